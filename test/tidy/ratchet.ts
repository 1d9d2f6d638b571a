import type { Finding, Rule } from "./rule.ts";
import type { SourceTree } from "./source-tree.ts";

/** What a file may still have, with the reason where a rule wants one. */
export type Allowance = number | { most: number; why: string };

/** Allowances by rule and path; they only ever shrink. */
export type Ratchet = Readonly<Record<string, Readonly<Record<string, Allowance>>>>;

const limitOf = (allowance: Allowance | undefined): number =>
  allowance === undefined ? 0 : typeof allowance === "number" ? allowance : allowance.most;

/** Findings of a rule by path. */
export const byPath = (findings: readonly Finding[]): Map<string, Finding[]> =>
  Map.groupBy(findings, ({ path }) => path);

/** What the findings of one path count. */
export const weightOf = (findings: readonly Finding[]): number =>
  findings.reduce((sum, { weight = 1 }) => sum + weight, 0);

const placeOf = ({ path, line }: Finding): string =>
  line === undefined ? path : `${path}:${line}`;

/**
 * One line for everything that a rule finds beyond its allowances, and for every allowance that is
 * too large by now.
 */
export function violations(
  rule: Rule,
  { tree, ratchet }: { tree: SourceTree; ratchet: Ratchet },
): string[] {
  const allowed = ratchet[rule.name] ?? {};
  const found = byPath(rule.check(tree));
  const broken = [...found].flatMap(([path, findings]) => {
    const limit = limitOf(allowed[path]);
    if (weightOf(findings) <= limit) return [];
    const note = limit === 0 ? "" : ` (${limit} allowed so far, now ${weightOf(findings)})`;
    return findings.map((finding) => `${placeOf(finding)} ${finding.problem}${note}`);
  });
  const loose = Object.entries(allowed)
    .filter(([path, allowance]) => weightOf(found.get(path) ?? []) < limitOf(allowance))
    .map(
      ([path, allowance]) =>
        `${path} is better than its allowance of ${limitOf(allowance)}: run bun test/tidy/tighten-ratchet.ts`,
    );
  return broken.length === 0 ? loose : [...broken, `Fix: ${rule.fix}`, ...loose];
}

import { readFileSync, writeFileSync } from "node:fs";
import { byPath, weightOf, type Allowance, type Ratchet } from "./ratchet.ts";
import { rules } from "./rules.ts";
import { readSourceTree } from "./source-tree.ts";

/*
 * bun test/tidy/tighten-ratchet.ts lowers every allowance of ratchet.json to what is still there, drops what is gone and
 * raises none. With `--adopt "rule name"` it writes down what that rule finds today: for a rule that is new.
 */
const file = new URL("./ratchet.json", import.meta.url);
const ratchet = JSON.parse(readFileSync(file, "utf8")) as Ratchet;
const adopted = process.argv.slice(2).filter((word) => word !== "--adopt");
const unknown = adopted.filter((name) => !rules.some((rule) => rule.name === name));
if (unknown.length > 0)
  throw new Error(
    `there is no rule ${unknown.join(", ")}; there are ${rules.map(({ name }) => name).join(", ")}`,
  );
const tree = await readSourceTree();

function lowered(allowance: Allowance | undefined, count: number): Allowance {
  const known = typeof allowance === "object" ? allowance.most : (allowance ?? count);
  return typeof allowance === "object"
    ? { ...allowance, most: Math.min(known, count) }
    : Math.min(known, count);
}

/** A rule's allowance for one path: none for what it never had, unless the rule is adopted. */
function allowanceFor(
  name: string,
  { path, count }: { path: string; count: number },
): Allowance | undefined {
  const allowance = ratchet[name]?.[path];
  if (!adopted.includes(name))
    return allowance === undefined ? undefined : lowered(allowance, count);
  if (name !== "file size") return count;
  return { most: count, why: typeof allowance === "object" ? allowance.why : "" };
}

const next = Object.fromEntries(
  rules.flatMap((rule) => {
    const entries = [...byPath(rule.check(tree))]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([path, findings]) => {
        const allowance = allowanceFor(rule.name, { path, count: weightOf(findings) });
        return allowance === undefined ? [] : [[path, allowance] as const];
      });
    return entries.length === 0 ? [] : [[rule.name, Object.fromEntries(entries)]];
  }),
);
writeFileSync(file, `${JSON.stringify(next, null, 2)}\n`);

import type { Finding, Rule } from "./rule.ts";
import { isProgram } from "./rule.ts";

/** One cycle for every group of files that reach each other, starting at the first by name. */
function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (path: string): void => {
    const start = trail.indexOf(path);
    if (start >= 0) cycles.push(trail.slice(start));
    if (start >= 0 || done.has(path)) return;
    trail.push(path);
    for (const next of graph.get(path) ?? []) visit(next);
    trail.pop();
    done.add(path);
  };
  for (const path of graph.keys()) visit(path);
  return cycles;
}

/** No file needs itself to be loaded first. Imports of types are free: they are gone before the program runs. */
export const importCycles: Rule = {
  name: "no import cycles",
  fix: "Move what both sides need to a file of its own, or pass it in.",
  check({ files }): Finding[] {
    const graph = new Map(
      files
        .filter(({ path }) => isProgram(path))
        .map(({ path, imports }) => [
          path,
          imports.flatMap(({ target, typeOnly }) =>
            target === undefined || typeOnly ? [] : [target],
          ),
        ]),
    );
    return cyclesOf(graph).map((cycle) => ({
      path: cycle[0] ?? "",
      problem: `is in a cycle: ${[...cycle, cycle[0]].join(" -> ")}`,
    }));
  },
};

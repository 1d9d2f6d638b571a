import type { Finding, Rule } from "./rule.ts";
import type { SourceTree } from "./source-tree.ts";
import { roomOf } from "./layer-imports.ts";
import { isProgram } from "./rule.ts";

/** One cycle for every group of nodes that reach each other, starting at the first by name. */
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

/**
 * No file needs itself to be loaded first. Imports of types are free: they are gone before the
 * program runs.
 */
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

/** The rooms that the files of each room import from, types included. */
function roomGraph({ files }: SourceTree): Map<string, string[]> {
  const graph = new Map<string, Set<string>>();
  for (const { path, imports } of files.filter((file) => isProgram(file.path))) {
    const room = roomOf(path);
    const known = graph.get(room) ?? new Set();
    for (const { target } of imports)
      if (target?.startsWith("src/") && roomOf(target) !== room) known.add(roomOf(target));
    graph.set(room, known);
  }
  return new Map([...graph].map(([room, known]) => [room, [...known].sort()]));
}

/**
 * No room knows a room that knows it, by values or by types: each can be read, moved and replaced
 * without the rooms above it.
 */
export const roomCycles: Rule = {
  name: "no room cycles",
  fix: "Declare what the lower room needs as an interface there, and hand it down.",
  check: (tree): Finding[] =>
    cyclesOf(roomGraph(tree)).map((cycle) => ({
      path: `src/${cycle[0] ?? ""}`,
      problem: `is in a cycle of rooms: ${[...cycle, cycle[0]].join(" -> ")}`,
    })),
};

import type { Finding, Rule } from "./rule.ts";
import type { SourceTree } from "./source-tree.ts";
import { roomOf } from "./layer-imports.ts";
import { isProgram } from "./rule.ts";

/** What each node leads to. */
type Graph = ReadonlyMap<string, readonly string[]>;

/** One cycle for every group of nodes that reach each other, starting at the first by name. */
function cyclesOf(graph: Graph): string[][] {
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

/** The files that each file imports from, for imports of types only where they count. */
const fileGraph = (
  { files }: SourceTree,
  { countsTypes }: { countsTypes: boolean },
): Map<string, string[]> =>
  new Map(
    files
      .filter(({ path }) => isProgram(path))
      .map(({ path, imports }) => [
        path,
        imports.flatMap(({ target, typeOnly }) =>
          target === undefined || (typeOnly && !countsTypes) ? [] : [target],
        ),
      ]),
  );

/**
 * No file needs itself to be loaded first. Imports of types are free: they are gone before the
 * program runs.
 */
export const importCycles: Rule = {
  name: "no import cycles",
  fix: "Move what both sides need to a file of its own, or pass it in.",
  check: (tree): Finding[] =>
    cyclesOf(fileGraph(tree, { countsTypes: false })).map((cycle) => ({
      path: cycle[0] ?? "",
      problem: `is in a cycle: ${[...cycle, cycle[0]].join(" -> ")}`,
    })),
};

/** What is left of a graph without the files from which no way leads into a circle. */
function circling(graph: Graph): Graph {
  const left = new Map([...graph].filter(([, next]) => next.some((path) => graph.has(path))));
  return left.size === graph.size ? graph : circling(left);
}

/** The shortest way from a file back to itself; undefined where there is none. */
function wayBack(graph: Graph, start: string): string[] | undefined {
  const seen = new Set<string>();
  let ways = [[start]];
  while (ways.length > 0) {
    ways = ways.flatMap((way) =>
      (graph.get(way.at(-1) ?? "") ?? [])
        .filter((path) => !seen.has(path) && seen.add(path))
        .map((path) => [...way, path]),
    );
    const found = ways.find((way) => way.at(-1) === start);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Every file that imports itself by way of others, with the shortest way. */
export const circlesOf = (graph: Graph): Finding[] => {
  const left = circling(graph);
  return [...left.keys()].flatMap((path): Finding[] => {
    const way = wayBack(left, path);
    return way === undefined ? [] : [{ path, problem: `is in a circle: ${way.join(" -> ")}` }];
  });
};

/** No two files describe each other: a reader understands one of them without the other. */
export const typeCircles: Rule = {
  name: "no circles of types",
  fix: "Declare the type with its own idea, below both files.",
  check: (tree) => circlesOf(fileGraph(tree, { countsTypes: true })),
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

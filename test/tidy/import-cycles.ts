import type { Finding, Rule } from "./rule.ts";
import type { SourceTree } from "./source-tree.ts";
import { roomOf } from "./layer-imports.ts";
import { isProgram } from "./rule.ts";

/** What each node leads to. */
type Graph = ReadonlyMap<string, readonly string[]>;

/** The files that each file imports from, types included. */
const fileGraph = ({ files }: SourceTree): Map<string, string[]> =>
  new Map(
    files
      .filter(({ path }) => isProgram(path))
      .map(({ path, imports }) => [
        path,
        imports.flatMap(({ target }) => (target === undefined ? [] : [target])),
      ]),
  );

/** What is left of a graph without the nodes from which no way leads into a circle. */
function circling(graph: Graph): Graph {
  const left = new Map([...graph].filter(([, next]) => next.some((path) => graph.has(path))));
  return left.size === graph.size ? graph : circling(left);
}

/** The shortest way from a node back to itself; undefined where there is none. */
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

/** Every file, or room, that imports itself by way of others, with the shortest way. */
export const circlesOf = (graph: Graph): Finding[] => {
  const left = circling(graph);
  return [...left.keys()].flatMap((path): Finding[] => {
    const way = wayBack(left, path);
    return way === undefined ? [] : [{ path, problem: `is in a circle: ${way.join(" -> ")}` }];
  });
};

/** No two files describe each other: a reader understands one of them without the other. */
export const importCycles: Rule = {
  name: "no import cycles",
  fix: "Declare the type with its own idea, below both files; or pass in what both sides need.",
  check: (tree) => circlesOf(fileGraph(tree)),
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
    circlesOf(roomGraph(tree)).map(({ path, problem }) => ({ path: `src/${path}`, problem })),
};

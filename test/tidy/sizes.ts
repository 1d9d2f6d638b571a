import { isIdentifier, SyntaxKind, type Node } from "typescript/unstable/ast";
import { isProgram, isTest, type Finding, type Rule } from "./rule.ts";
import type { SourceFile } from "./source-tree.ts";
import { lineAt, lineOf } from "./syntax-nodes.ts";

const columnsMax = 140;
const fileLinesMax = 500;
/** Tests are tables and histories, which a second file would not make easier to read. */
const testLinesMax = 600;
const functionLinesMax = 70;
const folderFilesMax = 15;

/** Lines that fit beside each other on a screen. */
export const lineLength: Rule = {
  name: "line length",
  fix: `Wrap it: at most ${columnsMax} columns, Biome wraps code at 100, and texts may be longer.`,
  check: ({ files }) =>
    files.flatMap(({ path, lines }) =>
      lines.flatMap((line, index): Finding[] =>
        line.length > columnsMax
          ? [{ path, line: index + 1, problem: `has ${line.length} columns` }]
          : [],
      ),
    ),
};

/** Files that can be read in one go. */
export const fileSize: Rule = {
  name: "file size",
  fix: `Split it by nouns: at most ${fileLinesMax} lines, ${testLinesMax} of tests.`,
  check: ({ files }) =>
    files
      .map(({ path, lines }) => ({ path, count: lines.length - 1 }))
      .filter(
        ({ path, count }) =>
          count > (path.startsWith("src/") && !isTest(path) ? fileLinesMax : testLinesMax),
      )
      .map(({ path, count }): Finding => ({ path, problem: `has ${count} lines`, weight: count })),
};

const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));

/** Folders that are a table of contents; files below their folders are those folders' own. */
export const folderSize: Rule = {
  name: "folder size",
  fix: `Fold what one neighbour imports, or group by nouns: at most ${folderFilesMax} files, tests aside.`,
  check({ files }): Finding[] {
    const folders = Map.groupBy(
      files.filter(({ path }) => isProgram(path)),
      ({ path }) => folderOf(path),
    );
    return [...folders]
      .filter(([, { length }]) => length > folderFilesMax)
      .map(([path, { length }]) => ({ path, problem: `has ${length} files`, weight: length }));
  },
};

const functionKinds = [
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.FunctionExpression,
  SyntaxKind.ArrowFunction,
  SyntaxKind.MethodDeclaration,
  SyntaxKind.Constructor,
  SyntaxKind.GetAccessor,
  SyntaxKind.SetAccessor,
];

/** The name of a function for people; its variable's or property's where it has none itself. */
function nameOf(node: Node): string {
  for (const named of [node, node.parent]) {
    if (
      "name" in named &&
      typeof named.name === "object" &&
      named.name !== null &&
      isIdentifier(named.name as Node)
    ) {
      return (named.name as { text: string }).text;
    }
  }
  return "a function";
}

/** Groups of tests are lists of functions, not one function. */
const isTestGroup = (node: Node): boolean =>
  /^(describe|test|it)\b/.test(node.parent.getText().slice(0, 12));

function longFunctions(file: SourceFile): Finding[] {
  return functionKinds
    .flatMap((kind) => file.nodes.get(kind) ?? [])
    .flatMap((node): Finding[] => {
      const start = lineOf(file.syntax, node);
      const count = lineAt(file.syntax, node.end) - start + 1;
      if (count <= functionLinesMax || (isTest(file.path) && isTestGroup(node))) return [];
      return [
        {
          path: file.path,
          line: start,
          problem: `${nameOf(node)} has ${count} lines`,
          weight: count,
        },
      ];
    });
}

/** Functions that can be held in the head. */
export const functionLength: Rule = {
  name: "function length",
  fix: `Give its parts names: at most ${functionLinesMax} lines, and 25 are wanted.`,
  check: ({ files }) => files.flatMap(longFunctions),
};

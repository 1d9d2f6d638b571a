import {
  isArrayLiteralExpression,
  isCallExpression,
  isIdentifier,
  isObjectLiteralExpression,
  isPropertyAssignment,
  isSpreadElement,
  isStringLiteral,
  isVariableStatement,
  type CallExpression,
  type Expression,
  type Node,
  type SourceFile as Syntax,
} from "typescript/unstable/ast";
import type { Finding, Rule } from "./rule.ts";
import { isProgram } from "./rule.ts";
import type { SourceFile, SourceTree } from "./source-tree.ts";
import { lineOf } from "./syntax-nodes.ts";

const tablePath = "src/endpoints/index.ts";

interface Declared {
  file: string;
  name: string;
  /** The path that it declares; undefined where that is not written out. */
  path: string | undefined;
}

/** Constants of a file with their values. */
const constantsOf = (syntax: Syntax): { name: string; value: Expression | undefined }[] =>
  syntax.statements
    .filter(isVariableStatement)
    .flatMap(({ declarationList }) =>
      declarationList.declarations.flatMap(({ name, initializer }) =>
        isIdentifier(name) ? [{ name: name.text, value: initializer }] : [],
      ),
    );

/** The text of the property `path` of the object that `defineEndpoint` is given. */
function declaredPath({ arguments: [options] }: CallExpression): string | undefined {
  if (options === undefined || !isObjectLiteralExpression(options)) return undefined;
  const property = options.properties.find(
    (each) => isPropertyAssignment(each) && each.name.getText() === "path",
  );
  const value =
    property !== undefined && isPropertyAssignment(property) ? property.initializer : undefined;
  return value !== undefined && isStringLiteral(value) ? value.text : undefined;
}

const declaredIn = ({ path: file, syntax }: SourceFile): Declared[] =>
  constantsOf(syntax).flatMap(({ name, value }) =>
    value !== undefined &&
    isCallExpression(value) &&
    value.expression.getText() === "defineEndpoint"
      ? [{ file, name, path: declaredPath(value) }]
      : [],
  );

const declaredEndpoints = ({ files }: SourceTree): Declared[] =>
  files
    .filter(({ path }) => path.startsWith("src/endpoints/") && isProgram(path))
    .flatMap(declaredIn);

/** An endpoint or a part of the table, as a list names it. */
interface Listed {
  file: SourceFile;
  node: Node;
  name: string;
}

const isPart = /^src\/endpoints\/(?:[^/]+\/)+index\.ts$/;

/** The lists of a file by their names. */
const listsOf = (file: SourceFile): [name: string, elements: readonly Expression[]][] =>
  constantsOf(file.syntax).flatMap(({ name, value }) =>
    value !== undefined && isArrayLiteralExpression(value) ? [[name, value.elements]] : [],
  );

/** What the table lists, with what the parts list that it spreads. */
function listedIn({ files }: SourceTree, table: SourceFile): Listed[] {
  const parts = new Map(
    files
      .filter(({ path }) => isPart.test(path))
      .flatMap((file) => listsOf(file).map(([name, elements]) => [name, { file, elements }])),
  );
  const entriesOf = (file: SourceFile, elements: readonly Expression[]): Listed[] =>
    elements.flatMap((node): Listed[] => {
      if (isIdentifier(node)) return [{ file, node, name: node.text }];
      const part = isSpreadElement(node) ? parts.get(node.expression.getText()) : undefined;
      return part === undefined ? [] : entriesOf(part.file, part.elements);
    });
  return entriesOf(table, new Map(listsOf(table)).get("endpoints") ?? []);
}

/** Every endpoint that is declared is served, once. */
export const endpointTable: Rule = {
  name: "endpoint table",
  fix: `List every endpoint exactly once, in ${tablePath} or in a part that it spreads.`,
  check(tree): Finding[] {
    const table = tree.files.find(({ path }) => path === tablePath);
    if (table === undefined) return [];
    const listed = listedIn(tree, table);
    const unlisted = declaredEndpoints(tree)
      .filter(({ name }) => !listed.some((entry) => entry.name === name))
      .map(({ file, name }) => ({ path: file, problem: `${name} is not in the table` }));
    const repeated = listed
      .filter((entry, index) => listed.findIndex(({ name }) => name === entry.name) !== index)
      .map(({ file, node, name }) => ({
        path: file.path,
        line: lineOf(file.syntax, node),
        problem: `${name} is listed twice`,
      }));
    return [...unlisted, ...repeated];
  },
};

/** Every endpoint is called by some test, by the part of its path before any parameter. */
export const testedEndpoints: Rule = {
  name: "tested endpoints",
  fix: "Add a test that calls it.",
  check(tree): Finding[] {
    const isTest = (path: string) => path.startsWith("test/") || path.endsWith(".test.ts");
    const tests = tree.files
      .filter(({ path }) => isTest(path))
      .map(({ lines }) => lines.join("\n"))
      .join("\n");
    return declaredEndpoints(tree)
      .filter(({ path }) => path !== undefined && !tests.includes(path.replace(/:.*/, "")))
      .map(({ file, name, path }) => ({
        path: file,
        problem: `${name} (${path}) is called by no test`,
      }));
  },
};

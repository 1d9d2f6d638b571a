import { posix } from "node:path";
import {
  isCallExpression,
  isExportDeclaration,
  isIdentifier,
  isImportDeclaration,
  isImportTypeNode,
  isLiteralTypeNode,
  isNamedImports,
  isNewExpression,
  isStringLiteral,
  SyntaxKind,
  type ImportDeclaration,
  type Node,
} from "typescript/unstable/ast";

/** One reference from a file to a module. */
export interface Import {
  specifier: string;
  /** Path of the file from the root of the project; undefined for packages. */
  target: string | undefined;
  /** Gone before the program runs. */
  typeOnly: boolean;
  node: Node;
}

function isTypeOnly({ importClause }: ImportDeclaration): boolean {
  if (importClause === undefined) return false;
  if (importClause.phaseModifier === SyntaxKind.TypeKeyword) return true;
  const { name, namedBindings } = importClause;
  if (name !== undefined || namedBindings === undefined || !isNamedImports(namedBindings))
    return false;
  return (
    namedBindings.elements.length > 0 &&
    namedBindings.elements.every((element) => element.isTypeOnly)
  );
}

interface Reference {
  specifier: Node | undefined;
  typeOnly: boolean;
}

/**
 * What a call names: `import("./x.ts")`, or `join(import.meta.dir, "x.ts")` of a program that is
 * started by path.
 */
function calledReference(node: Node): Reference | undefined {
  if (!isCallExpression(node)) return undefined;
  const [first, second] = node.arguments;
  if (node.expression.kind === SyntaxKind.ImportKeyword)
    return { specifier: first, typeOnly: false };
  const byPath =
    isIdentifier(node.expression) &&
    node.expression.text === "join" &&
    first?.getText() === "import.meta.dir";
  return byPath && second !== undefined && isStringLiteral(second) && second.text.endsWith(".ts")
    ? { specifier: second, typeOnly: false }
    : undefined;
}

/** The module that a node refers to, with whether only types come from it. */
function reference(node: Node): Reference | undefined {
  if (isImportDeclaration(node))
    return { specifier: node.moduleSpecifier, typeOnly: isTypeOnly(node) };
  if (isExportDeclaration(node))
    return { specifier: node.moduleSpecifier, typeOnly: node.isTypeOnly };
  if (isImportTypeNode(node)) {
    return {
      specifier: isLiteralTypeNode(node.argument) ? node.argument.literal : undefined,
      typeOnly: true,
    };
  }
  // Threads, child programs and data files are named as `new URL("./worker.ts", import.meta.url)`.
  if (isNewExpression(node) && isIdentifier(node.expression) && node.expression.text === "URL") {
    return { specifier: node.arguments?.[0], typeOnly: false };
  }
  return calledReference(node);
}

const referring = [
  SyntaxKind.ImportDeclaration,
  SyntaxKind.ExportDeclaration,
  SyntaxKind.ImportType,
  SyntaxKind.CallExpression,
  SyntaxKind.NewExpression,
] as const;

/** Every module that a file names: imports, re-exports, `import()` and `new URL()`. */
export function importsOf(path: string, nodes: ReadonlyMap<SyntaxKind, readonly Node[]>): Import[] {
  return referring
    .flatMap((kind) => nodes.get(kind) ?? [])
    .flatMap((node): Import[] => {
      const { specifier, typeOnly = false } = reference(node) ?? {};
      if (specifier === undefined || !isStringLiteral(specifier)) return [];
      const startedByPath =
        isCallExpression(node) && node.expression.kind !== SyntaxKind.ImportKeyword;
      const relative = specifier.text.startsWith(".") || startedByPath;
      const target = relative ? posix.join(posix.dirname(path), specifier.text) : undefined;
      return [{ specifier: specifier.text, target, typeOnly, node }];
    });
}

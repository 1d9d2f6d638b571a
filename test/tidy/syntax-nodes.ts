import { SyntaxKind, type Node, type SourceFile } from "typescript/unstable/ast";

/** The kinds of nodes that rules look at; everything else is walked past. */
const kept: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.AnyKeyword,
  SyntaxKind.ArrowFunction,
  SyntaxKind.CallExpression,
  SyntaxKind.Constructor,
  SyntaxKind.ExportAssignment,
  SyntaxKind.ExportDeclaration,
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.FunctionExpression,
  SyntaxKind.GetAccessor,
  SyntaxKind.ImportDeclaration,
  SyntaxKind.ImportType,
  SyntaxKind.MethodDeclaration,
  SyntaxKind.NewExpression,
  SyntaxKind.PropertyAccessExpression,
  SyntaxKind.SetAccessor,
]);

/** The nodes of a file by kind, from one walk that all rules share. */
export function nodesByKind(file: SourceFile): ReadonlyMap<SyntaxKind, readonly Node[]> {
  const nodes = new Map<SyntaxKind, Node[]>();
  const visit = (node: Node): void => {
    if (kept.has(node.kind)) {
      const known = nodes.get(node.kind);
      if (known === undefined) nodes.set(node.kind, [node]);
      else known.push(node);
    }
    node.forEachChild(visit);
  };
  visit(file);
  return nodes;
}

/** The line of a position, counted from 1. */
export function lineAt(file: SourceFile, position: number): number {
  const starts = file.getLineStarts();
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= position) low = middle;
    else high = middle - 1;
  }
  return low + 1;
}

/** The line that a node starts on, counted from 1. */
export const lineOf = (file: SourceFile, node: Node): number => lineAt(file, node.getStart(file));

import {
  isClassDeclaration,
  isExportAssignment,
  isFunctionDeclaration,
  isInterfaceDeclaration,
  SyntaxKind,
  type Statement,
} from "typescript/unstable/ast";
import type { Finding, Rule } from "./rule.ts";
import { lineOf } from "./syntax-nodes.ts";

/** Exports have one name everywhere. */
export const noDefaultExports: Rule = {
  name: "no default exports",
  fix: "Export by name.",
  check: ({ files }) =>
    files
      .filter(({ path }) => path.startsWith("src/"))
      .flatMap((file) => {
        const assigned = (file.nodes.get(SyntaxKind.ExportAssignment) ?? []).filter(
          isExportAssignment,
        );
        const marked = file.syntax.statements.filter(hasDefaultModifier);
        return [...assigned, ...marked].map(
          (node): Finding => ({
            path: file.path,
            line: lineOf(file.syntax, node),
            problem: "has a default export",
          }),
        );
      }),
};

function hasDefaultModifier(statement: Statement): boolean {
  const declares =
    isFunctionDeclaration(statement) ||
    isClassDeclaration(statement) ||
    isInterfaceDeclaration(statement);
  return (
    declares &&
    (statement.modifiers?.some(({ kind }) => kind === SyntaxKind.DefaultKeyword) ?? false)
  );
}

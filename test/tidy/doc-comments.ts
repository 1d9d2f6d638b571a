import {
  isCallExpression,
  isClassDeclaration,
  isEnumDeclaration,
  isFunctionDeclaration,
  isIdentifier,
  isInterfaceDeclaration,
  isTypeAliasDeclaration,
  isVariableStatement,
  SyntaxKind,
  type Statement,
} from "typescript/unstable/ast";
import { isProgram, type Finding, type Rule } from "./rule.ts";
import type { SourceFile } from "./source-tree.ts";
import { lineOf } from "./syntax-nodes.ts";

/** The name that a statement exports; undefined when it exports nothing of its own. */
function exportedName(statement: Statement): string | undefined {
  const declares =
    isFunctionDeclaration(statement) ||
    isClassDeclaration(statement) ||
    isInterfaceDeclaration(statement) ||
    isTypeAliasDeclaration(statement) ||
    isEnumDeclaration(statement) ||
    isVariableStatement(statement);
  if (!declares || !statement.modifiers?.some(({ kind }) => kind === SyntaxKind.ExportKeyword))
    return undefined;
  if (!isVariableStatement(statement)) return statement.name?.text;
  const name = statement.declarationList.declarations[0]?.name;
  return name !== undefined && isIdentifier(name) ? name.text : "a constant";
}

/** Endpoints and tools have a summary or a title, which says what a comment above them would. */
function describesItself(statement: Statement): boolean {
  const value = isVariableStatement(statement)
    ? statement.declarationList.declarations[0]?.initializer
    : undefined;
  return (
    value !== undefined &&
    isCallExpression(value) &&
    ["defineEndpoint", "defineTool"].includes(value.expression.getText())
  );
}

/** One comment may speak for declarations that follow each other without a blank line. */
function undocumented({ path, syntax }: SourceFile): Finding[] {
  let documented = false;
  return syntax.statements.flatMap((statement): Finding[] => {
    const leading = syntax.text.slice(statement.pos, statement.getStart(syntax));
    documented = leading.includes("/**") || (documented && !/\n\s*\n/.test(leading));
    const name = exportedName(statement);
    if (documented || name === undefined || describesItself(statement)) return [];
    return [{ path, line: lineOf(syntax, statement), problem: `${name} has no doc comment` }];
  });
}

/** Whoever uses an export reads one sentence about it first. */
export const docComments: Rule = {
  name: "doc comments",
  fix: "Write one sentence above it: what it is, its unit, what it throws, and who requires it.",
  check: ({ files }) => files.filter(({ path }) => isProgram(path)).flatMap(undocumented),
};

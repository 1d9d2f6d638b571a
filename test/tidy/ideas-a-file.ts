import { basename } from "node:path";
import { type ClassDeclaration, isClassDeclaration, SyntaxKind } from "typescript/unstable/ast";
import { isProgram, type Finding, type Rule } from "./rule.ts";
import type { SourceFile } from "./source-tree.ts";
import { lineOf } from "./syntax-nodes.ts";

/**
 * Whether a file has the name of a class: `RetryBudget` stands in `retry-budget.ts`, and
 * `OpenRouterImport` in `openrouter-import.ts`, since vendors are written as one word.
 */
const isNamedAfter = (file: string, name: string): boolean =>
  file.replaceAll("-", "") === name.toLowerCase();

const isExported = (node: ClassDeclaration): boolean =>
  node.modifiers?.some(({ kind }) => kind === SyntaxKind.ExportKeyword) === true;

/**
 * The exported classes of a file that have another name than it, except for errors, which are
 * thrown there. A class that is not exported is a part of its file's idea.
 */
function hiddenClasses(file: SourceFile): Finding[] {
  const own = basename(file.path, ".ts");
  return file.syntax.statements
    .filter(isClassDeclaration)
    .filter(isExported)
    .flatMap((node): Finding[] => {
      const name = node.name?.text ?? "a class";
      if (isNamedAfter(own, name) || name.endsWith("Error")) return [];
      return [
        { path: file.path, line: lineOf(file.syntax, node), problem: `hides the class ${name}` },
      ];
    });
}

/** Every dialect has the same files, named by what they do: `decode-stream.ts`, `usage.ts`. */
const rolesByFile = "src/inference/dialects/";

/** A class is found by the name of its file; so a file has one idea, and no second one hides in it. */
export const ideasAFile: Rule = {
  name: "ideas a file",
  fix: "Move the class into a file of its name.",
  check: ({ files }) =>
    files
      .filter(({ path }) => isProgram(path) && !path.startsWith(rolesByFile))
      .flatMap(hiddenClasses),
};

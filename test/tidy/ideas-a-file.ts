import { basename } from "node:path";
import { isClassDeclaration } from "typescript/unstable/ast";
import { isProgram, type Finding, type Rule } from "./rule.ts";
import type { SourceFile } from "./source-tree.ts";
import { lineOf } from "./syntax-nodes.ts";

/** The name of a class as a file has it: `RetryBudget` stands in `retry-budget.ts`. */
const fileNameOf = (name: string): string =>
  name.replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, "-").toLowerCase();

/** The classes of a file that have another name than it, except for errors, which are thrown there. */
function hiddenClasses(file: SourceFile): Finding[] {
  const own = basename(file.path, ".ts");
  return file.syntax.statements.filter(isClassDeclaration).flatMap((node): Finding[] => {
    const name = node.name?.text ?? "a class";
    if (fileNameOf(name) === own || name.endsWith("Error")) return [];
    return [
      { path: file.path, line: lineOf(file.syntax, node), problem: `hides the class ${name}` },
    ];
  });
}

/** The rooms that readers open most; the others follow as they are cleared. */
const rooms = ["src/inference/pipeline/", "src/inference/canonical/", "src/billing/ledger/"];

/** A class is found by the name of its file; so a file has one idea, and no second one hides in it. */
export const ideasAFile: Rule = {
  name: "ideas a file",
  fix: "Move the class into a file of its name.",
  check: ({ files }) =>
    files
      .filter(({ path }) => isProgram(path) && rooms.some((room) => path.startsWith(room)))
      .flatMap(hiddenClasses),
};

import { SyntaxKind } from "typescript/unstable/ast";
import type { Finding, Rule } from "./rule.ts";
import { lineOf } from "./syntax-nodes.ts";

/** What Bun runs is what stands in the import: relative names carry their extension. */
export const importExtensions: Rule = {
  name: "relative imports name their file",
  fix: 'Write the whole file name, such as "./price.ts".',
  check: ({ files }) =>
    files.flatMap((file) =>
      file.imports
        .filter(
          ({ target, node }) => target !== undefined && node.kind !== SyntaxKind.NewExpression,
        )
        .filter(({ specifier }) => !/\.(ts|mjs|json|lua)$/.test(specifier))
        .map(
          ({ specifier, node }): Finding => ({
            path: file.path,
            line: lineOf(file.syntax, node),
            problem: `imports ${specifier}`,
          }),
        ),
    ),
};

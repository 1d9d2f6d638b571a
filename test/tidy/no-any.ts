import { SyntaxKind } from "typescript/unstable/ast";
import type { Finding, Rule } from "./rule.ts";
import { lineOf } from "./syntax-nodes.ts";

/** `any` turns the compiler off; `unknown` and a parse at the edge keep it on. */
export const noAny: Rule = {
  name: "no any",
  fix: "Use unknown and parse, or write the type.",
  check: ({ files }) =>
    files.flatMap((file) =>
      (file.nodes.get(SyntaxKind.AnyKeyword) ?? []).map(
        (node): Finding => ({
          path: file.path,
          line: lineOf(file.syntax, node),
          problem: "uses the type any",
        }),
      ),
    ),
};

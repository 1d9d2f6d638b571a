import { isProgram, type Finding, type Rule } from "./rule.ts";

/** A comparison with the id of a dialect, such as `dialect === "openai-chat"`. */
const question =
  /[=!]==\s*"(?:openai-chat|openai-responses|anthropic-messages|google-generate|amazon-converse)"/;

/** The pipeline asks a dialect what it declares, and never which dialect it is. */
export const dialectQuestions: Rule = {
  name: "dialect questions",
  fix: "Declare what differs in src/inference/dialects/dialect.ts, and say it in the dialect's own index.ts.",
  check: ({ files }) =>
    files
      .filter(({ path }) => isProgram(path) && /^src\/inference\/(?:pipeline|routing)\//.test(path))
      .flatMap(({ path, lines }) =>
        lines.flatMap((text, index): Finding[] =>
          question.test(text)
            ? [{ path, line: index + 1, problem: "asks which dialect it is" }]
            : [],
        ),
      ),
};

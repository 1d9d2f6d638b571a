import { z } from "zod";
import { openaiSurface } from "./plain-surface.ts";

/** OpenAI's categories, each with the words that make the sandbox flag it. */
const wordsByCategory: Readonly<Record<string, readonly string[]>> = {
  harassment: ["harassment", "idiot"],
  "harassment/threatening": ["threat"],
  hate: ["hate"],
  "hate/threatening": [],
  illicit: ["illicit", "smuggle"],
  "illicit/violent": ["bomb"],
  "self-harm": ["self-harm", "suicide"],
  "self-harm/instructions": [],
  "self-harm/intent": [],
  sexual: ["sexual"],
  "sexual/minors": [],
  violence: ["violence", "kill"],
  "violence/graphic": ["gore"],
};

const moderationsBody = z.object({
  model: z.string().nullish(),
  input: z.union([
    z.string(),
    z.array(z.string()).min(1),
    z.array(z.object({ type: z.string(), text: z.string().optional() })).min(1),
  ]),
});

/**
 * OpenAI's `POST /v1/moderations`: a category is flagged when one of its words stands in the text.
 */
export const moderations = openaiSurface((body) => {
  const request = moderationsBody.parse(body);
  const texts = inputTexts(request.input);
  return {
    text: texts.at(-1) ?? "",
    answer: (seed) => ({
      id: `modr-${seed}`,
      model: request.model ?? "sandbox-moderate",
      results: texts.map(moderate),
    }),
  };
});

/** Several strings are judged one by one; the parts of one input together, as OpenAI does. */
function inputTexts(input: z.infer<typeof moderationsBody>["input"]): string[] {
  if (typeof input === "string") return [input];
  if (input.every((entry) => typeof entry === "string")) return input;
  return [
    input.map((entry) => (typeof entry === "string" ? entry : (entry.text ?? ""))).join("\n"),
  ];
}

function moderate(text: string): Record<string, unknown> {
  const words = new Set(text.toLowerCase().match(/[\p{L}-]+/gu));
  const judged = Object.entries(wordsByCategory).map(([category, triggers]) => ({
    category,
    flagged: triggers.some((word) => words.has(word)),
  }));
  const byCategory = <Value>(value: (flagged: boolean) => Value): Record<string, Value> =>
    Object.fromEntries(judged.map(({ category, flagged }) => [category, value(flagged)]));
  return {
    flagged: judged.some((judgement) => judgement.flagged),
    categories: byCategory((flagged) => flagged),
    category_scores: byCategory((flagged) => (flagged ? 0.95 : 0.0001)),
    category_applied_input_types: byCategory(() => ["text"]),
  };
}

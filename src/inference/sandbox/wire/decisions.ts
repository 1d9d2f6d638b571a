import { z } from "zod";
import { similarity } from "../text-vector.ts";
import { estimateTokens } from "../tokens.ts";
import { openaiSurface } from "./plain-surface.ts";

const guidance = z.union([z.string(), z.record(z.string(), z.unknown()), z.array(z.unknown())]);

const question = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("noul"),
    instructions: guidance,
    criteria: z.record(z.string(), guidance.nullable()).nullish(),
  }),
  z.object({
    type: z.literal("choice"),
    instructions: guidance,
    criteria: z.record(z.string(), guidance.nullable()),
  }),
  z.object({
    type: z.literal("score"),
    instructions: guidance,
    criteria: z.array(guidance).min(2).max(10),
  }),
]);

const decisionsBody = z.object({
  model: z.string(),
  state: guidance,
  questions: z.record(z.string(), question),
});

type Question = z.infer<typeof question>;

const textOf = (guidance: unknown): string =>
  typeof guidance === "string" ? guidance : JSON.stringify(guidance ?? "");

/** Decisions: an option is the likelier the more words it has in common with the state. */
export const decisions = openaiSurface((body) => {
  const request = decisionsBody.parse(body);
  const state = textOf(request.state);
  const questions = Object.entries(request.questions);
  const texts = [
    state,
    ...questions.map(
      ([, { instructions, criteria }]) => textOf(instructions) + JSON.stringify(criteria ?? ""),
    ),
  ];
  return {
    text: state,
    answer: () => ({
      model: request.model,
      answers: Object.fromEntries(questions.map(([id, asked]) => [id, decide(asked, state)])),
      usage: {
        input_tokens: texts.reduce((sum, text) => sum + estimateTokens(text), 0),
        output_tokens: 0,
      },
    }),
  };
});

/**
 * Shares of likeness, which add up to one; nothing in common with any option is no reason to prefer
 * one.
 */
function sharesOf(state: string, options: readonly string[]): number[] {
  const weights = options.map((option) => 0.1 + similarity(state, option));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

function decide(
  { type, instructions, criteria }: Question,
  state: string,
): Record<string, unknown> {
  if (type === "noul") {
    const [noul] = sharesOf(
      state,
      [criteria?.["true"] ?? instructions, criteria?.["false"] ?? ""].map(textOf),
    );
    return { type, noul };
  }
  const options =
    type === "choice"
      ? Object.entries(criteria).map(([name, meaning]) => `${name} ${textOf(meaning)}`)
      : criteria.map(textOf);
  const shares = sharesOf(state, options);
  const confidence = Math.max(...shares);
  if (type === "score") {
    const score = shares.reduce((sum, share, level) => sum + share * level, 0);
    return { type, score, legend: { ...criteria }, probabilities: { ...shares }, confidence };
  }
  const names = Object.keys(criteria);
  return {
    type,
    choice: names[shares.indexOf(confidence)],
    probabilities: Object.fromEntries(names.map((name, index) => [name, shares[index] ?? 0])),
    confidence,
  };
}

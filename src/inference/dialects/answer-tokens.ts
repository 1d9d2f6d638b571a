/** Tokens of several answers together. */
export interface AnswerTokens {
  inputTokens: number;
  cachedTokens: number;
  outputTokens: number;
  reasoningTokens: number;
}

const count = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) ? value : 0;

/** Adds the tokens of an answer's body, in whichever dialect it is. */
export function addAnswerTokens(sum: AnswerTokens, body: unknown): void {
  const usage = Object(Object(body).usage) as Record<string, unknown>;
  const input = Object(usage["input_tokens_details"] ?? usage["prompt_tokens_details"]);
  const output = Object(usage["output_tokens_details"] ?? usage["completion_tokens_details"]);
  sum.inputTokens += count(usage["input_tokens"] ?? usage["prompt_tokens"]);
  sum.cachedTokens += count(input["cached_tokens"] ?? usage["cache_read_input_tokens"]);
  sum.outputTokens += count(usage["output_tokens"] ?? usage["completion_tokens"]);
  sum.reasoningTokens += count(output["reasoning_tokens"]);
}

/** Returns the tokens in the form of OpenAI's batches. */
export const tokensOfBatch = (sum: AnswerTokens) => ({
  input_tokens: sum.inputTokens,
  input_tokens_details: { cached_tokens: sum.cachedTokens },
  output_tokens: sum.outputTokens,
  output_tokens_details: { reasoning_tokens: sum.reasoningTokens },
  total_tokens: sum.inputTokens + sum.outputTokens,
});

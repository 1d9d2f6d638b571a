import type { JsonObject } from "../../canonical/json.ts";
import type { LogProbabilities } from "../../canonical/log-probability.ts";
import { decodeTokens, encodeTokens } from "../openai-token-fields.ts";
import { asArray, asObject } from "../request-fields.ts";

/** Log probabilities of a choice or chunk; undefined when there are none. */
export function decodeLogProbabilities(value: unknown): LogProbabilities | undefined {
  const fields = asObject(value);
  const content = asArray(fields?.content) && decodeTokens(fields?.content);
  const refusal = asArray(fields?.refusal) && decodeTokens(fields?.refusal);
  if (content === undefined && refusal === undefined) return undefined;
  return { ...(content && { content }), ...(refusal && { refusal }) };
}

/** `logprobs` of a choice; both lists are always named. */
export const encodeLogProbabilities = ({ content, refusal }: LogProbabilities): JsonObject => ({
  content: content ? encodeTokens(content) : null,
  refusal: refusal ? encodeTokens(refusal) : null,
});

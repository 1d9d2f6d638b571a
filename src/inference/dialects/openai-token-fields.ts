import type { JsonObject, JsonValue } from "../canonical/json.ts";
import type { TokenLogProbability, TokenProbability } from "../canonical/log-probability.ts";
import { asArray, asNumber, asObject, asString } from "./request-fields.ts";

/** A list of tokens with their probabilities, as chat and Responses spell it; empty when there is none. */
export const decodeTokens = (value: unknown): TokenLogProbability[] =>
  (asArray(value) ?? []).map((entry) => ({
    ...decodeCandidate(entry),
    top: (asArray(asObject(entry)?.top_logprobs) ?? []).map(decodeCandidate),
  }));

function decodeCandidate(value: JsonValue): TokenProbability {
  const fields = asObject(value);
  const bytes =
    fields?.bytes === null ? null : (asArray(fields?.bytes) as readonly number[] | undefined);
  return {
    token: asString(fields?.token) ?? "",
    logprob: asNumber(fields?.logprob) ?? 0,
    ...(bytes !== undefined && { bytes }),
  };
}

/** Tokens with their probabilities on the wire. */
export const encodeTokens = (tokens: readonly TokenLogProbability[]): JsonObject[] =>
  tokens.map(({ top, ...token }) => ({ ...token, top_logprobs: top.map((one) => ({ ...one })) }));

import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { LogProbabilities, TokenLogProbability, TokenProbability } from "../../canonical/log-probability.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";

/** Log probabilities of a choice or chunk; undefined when there are none. */
export function decodeLogProbabilities(value: unknown): LogProbabilities | undefined {
  const fields = asObject(value);
  const content = asArray(fields?.content)?.map(decodeToken);
  const refusal = asArray(fields?.refusal)?.map(decodeToken);
  if (content === undefined && refusal === undefined) return undefined;
  return { ...(content && { content }), ...(refusal && { refusal }) };
}

const decodeToken = (value: JsonValue): TokenLogProbability => ({
  ...decodeCandidate(value),
  top: (asArray(asObject(value)?.top_logprobs) ?? []).map(decodeCandidate),
});

function decodeCandidate(value: JsonValue): TokenProbability {
  const fields = asObject(value);
  const bytes = fields?.bytes === null ? null : asArray(fields?.bytes) as readonly number[] | undefined;
  return {
    token: asString(fields?.token) ?? "",
    logprob: asNumber(fields?.logprob) ?? 0,
    ...(bytes !== undefined && { bytes }),
  };
}

/** `logprobs` of a choice; both lists are always named. */
export const encodeLogProbabilities = ({ content, refusal }: LogProbabilities): JsonObject => ({
  content: content?.map(encodeToken) ?? null,
  refusal: refusal?.map(encodeToken) ?? null,
});

const encodeToken = ({ top, ...token }: TokenLogProbability): JsonObject => ({ ...token, top_logprobs: top.map((one) => ({ ...one })) });

import type { JsonValue } from "../../canonical/json.ts";
import type { LogProbabilities, TokenProbability } from "../../canonical/log-probability.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";

/** `logprobsResult` of a candidate: the chosen tokens, and beside each its likeliest rivals; undefined when there are none. */
export function decodeLogProbabilities(value: unknown): LogProbabilities | undefined {
  const fields = asObject(value);
  const chosen = asArray(fields?.chosenCandidates);
  if (chosen === undefined || chosen.length === 0) return undefined;
  const rivals = asArray(fields?.topCandidates) ?? [];
  const content = chosen.map((token, index) => ({
    ...decodeToken(token),
    top: (asArray(asObject(rivals[index])?.candidates) ?? []).map(decodeToken),
  }));
  return { content };
}

function decodeToken(value: JsonValue): TokenProbability {
  const fields = asObject(value);
  return { token: asString(fields?.token) ?? "", logprob: asNumber(fields?.logProbability) ?? 0 };
}

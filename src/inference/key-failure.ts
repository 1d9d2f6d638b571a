import type { KeyUse } from "../account/byok/provider-key-usage.ts";
import type { KeyVerdict } from "../account/byok/provider-keys.ts";
import type { AttemptFailure } from "./upstream/classify-failure.ts";

/** Statuses that vendors answer with when nothing is left to spend; OpenAI 429, Anthropic 400, others 402 and 403. */
const billingStatuses: ReadonlySet<number | null> = new Set([400, 403, 429]);
const billingCode = /insufficient_quota|insufficient_(?:funds|credits?|balance)|billing/i;
/** Google's words for a rate limit speak of quota and billing as well, so neither word alone counts. */
const billingWords =
  /credit balance|insufficient (?:credit|balance|fund)|billing (?:hard limit|is not active|has been)|payment (?:required|method)/i;

/** Google and xAI answer 400 to a key that does not exist. */
const credentialStatuses: ReadonlySet<number | null> = new Set([400, 403]);
const credentialCode = /api_key_invalid|invalid_api_key/i;
const credentialWords =
  /api key (?:not valid|is invalid|expired|not found)|(?:incorrect|invalid|expired) api key/i;

/** Why a provider refused the key that was sent; undefined where the failure is another. */
function refusalOf({
  upstreamStatus: status,
  upstreamMessage,
  upstreamCode,
}: AttemptFailure): "billing" | "credential" | undefined {
  const says = (words: RegExp, codes: RegExp): boolean =>
    words.test(upstreamMessage ?? "") || codes.test(upstreamCode ?? "");
  if (status === 402 || (billingStatuses.has(status) && says(billingWords, billingCode)))
    return "billing";
  if (status === 401 || (credentialStatuses.has(status) && says(credentialWords, credentialCode)))
    return "credential";
  return undefined;
}

/** What a failure says of the key that was sent; undefined where it says nothing of it. */
export function verdictOf(failure: AttemptFailure): KeyVerdict | undefined {
  if (refusalOf(failure) !== undefined) return { kind: "refused" };
  return failure.reason === "rate_limited"
    ? { kind: "limited", retryAfterSeconds: failure.retryAfterSeconds }
    : undefined;
}

/**
 * The failure as it is judged where a provider key was sent: what is wrong with a key is no reason not to try the
 * next, and no outage of the provider. What a provider says of a donated key is its owner's business.
 */
export function asKeyFailure(failure: AttemptFailure, source: KeyUse["source"]): AttemptFailure {
  const refusal = refusalOf(failure);
  const isPooled = source === "pool";
  const words =
    isPooled && verdictOf(failure) !== undefined
      ? { upstreamMessage: null, upstreamCode: null, upstreamError: null }
      : {};
  if (refusal === undefined) return { ...failure, ...words, outage: false };
  const { retryAfterSeconds: _, ...rest } = failure;
  const code =
    refusal === "credential" ? "upstream_401" : isPooled ? "upstream_error" : "upstream_402";
  return { ...rest, ...words, code, reason: "credential_error", failover: true, outage: false };
}

/** Whether another key at the same provider may do better: models and limits differ between accounts. */
export const isMendedByAnotherKey = ({ reason }: AttemptFailure): boolean =>
  reason === "credential_error" || reason === "rate_limited" || reason === "model_unavailable";

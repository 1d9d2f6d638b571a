import type { KeyUse } from "../../../byok/provider-key-usage.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { InferenceDependencies, Execution } from "../execution.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { listCeiling } from "../hold/hold-ceiling.ts";
import type { AttemptFailure } from "../../upstream/upstream-failure.ts";
import type { KeyVerdict } from "../../../byok/provider-keys.ts";

/**
 * Takes the candidate's provider key for the request and opens it. Returns undefined where the
 * key's quota is used up, or where another key at the same provider met a failure that no other key
 * avoids.
 */
export function takeKey(execution: Execution, candidate: Candidate): Candidate | undefined {
  const { deps, call, failed, notCalled } = execution;
  const { credential, route, model } = candidate;
  // An answer that has come back in a batch is sent nowhere.
  if (credential === undefined || call.leg?.kind === "return") return candidate;
  const isHopeless = failed.some(
    ({ record, failure }) =>
      record.provider === route.provider.id &&
      record.model === model.id &&
      !isMendedByAnotherKey(failure),
  );
  if (isHopeless) return undefined;
  if (takeAgain(execution, candidate)) return deps.openedRoutes.open(candidate);
  const message = `Nothing is left of the quota of the provider key for ${route.provider.name}.`;
  notCalled.push(new GatewayError("no_upstream", message, { param: "model" }));
  return undefined;
}

/**
 * Takes the candidate's provider key for an attempt; returns false where nothing is left of its
 * quota.
 */
export const takeAgain = (
  { deps, call, inputTokens }: Pick<Execution, "deps" | "call" | "inputTokens">,
  candidate: Candidate,
): boolean =>
  candidate.credential === undefined ||
  deps.providerKeys.take(
    call.generationId,
    candidate.credential,
    listCeiling(candidate, { inputTokens, ...call.requirements }),
  );

/**
 * Records a failure with the key that was sent, gives the key back, and returns the failure as it
 * is judged for provider keys.
 */
export function noteKeyFailure(
  { deps, call }: Execution,
  {
    candidate: { credential },
    failure,
    cancelled,
  }: { candidate: Candidate; failure: AttemptFailure; cancelled: boolean },
): AttemptFailure {
  if (credential === undefined) return failure;
  deps.providerKeys.release(call.generationId);
  const verdict = cancelled ? undefined : verdictOf(failure);
  if (verdict !== undefined) deps.providerKeys.note(credential, verdict);
  return asKeyFailure(failure, credential.source);
}

/**
 * Records that a provider key served; returns false where the candidate has none, so that the
 * outcome counts for the platform's own health.
 */
export function noteKeyServed(deps: InferenceDependencies, { credential }: Candidate): boolean {
  if (credential === undefined) return false;
  deps.providerKeys.note(credential, { kind: "served" });
  return true;
}

/**
 * Statuses that vendors answer with when an account has no funds: OpenAI 429, Anthropic 400, others
 * 402 and 403.
 */
const billingStatuses: ReadonlySet<number | null> = new Set([400, 403, 429]);
const billingCode = /insufficient_quota|insufficient_(?:funds|credits?|balance)|billing/i;
/**
 * Matches texts about missing funds. Google's texts for a rate limit mention both quota and
 * billing, so neither word alone counts.
 */
const billingWords =
  /credit balance|insufficient (?:credit|balance|fund)|billing (?:hard limit|is not active|has been)|payment (?:required|method)/i;

/** Google and xAI answer 400 to a key that does not exist. */
const credentialStatuses: ReadonlySet<number | null> = new Set([400, 403]);
const credentialCode = /api_key_invalid|invalid_api_key/i;
const credentialWords =
  /api key (?:not valid|is invalid|expired|not found)|(?:incorrect|invalid|expired) api key/i;

/** Returns whether the text of an answer says that its provider does not know the key. */
export const saysKeyIsUnknown = (text: string): boolean =>
  credentialWords.test(text) || credentialCode.test(text);

/**
 * Returns why a provider refused the key that was sent; undefined where it failed for another
 * reason.
 */
export function refusalOf({
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

/** Returns what a failure says about the key that was sent; undefined where it says nothing. */
export function verdictOf(failure: AttemptFailure): KeyVerdict | undefined {
  if (refusalOf(failure) !== undefined) return { kind: "refused", reason: failure.upstreamMessage };
  return failure.reason === "rate_limited"
    ? { kind: "limited", retryAfterSeconds: failure.retryAfterSeconds }
    : undefined;
}

/**
 * Judges a failure where a provider key was sent: a key's problem is a reason to try the next
 * candidate, and no outage of the provider. The provider's words about a donated key are withheld,
 * since they concern its owner alone.
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

/**
 * Returns whether another key at the same provider may succeed: models and limits differ between
 * accounts.
 */
export const isMendedByAnotherKey = ({ reason }: AttemptFailure): boolean =>
  reason === "credential_error" || reason === "rate_limited" || reason === "model_unavailable";

/** Returns whether the provider's retry budget is spent, so that retries do not worsen an outage. */
export function isHeldBack(execution: Execution, { route, model, credential }: Candidate): boolean {
  const backend = route.provider.id;
  // A caller's own key uses the caller's own account at the provider, so the platform's retry
  // budget does not apply.
  if (credential !== undefined || execution.deps.health.mayRetry(backend)) return false;
  execution.heldBack.push({ provider: backend, model: model.id, rule: "retry_budget" });
  return true;
}

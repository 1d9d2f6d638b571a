import { GatewayError } from "../platform/lib/errors.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import type { Execution } from "./execution.ts";
import { listCeiling } from "./hold-ceiling.ts";
import { asKeyFailure, isMendedByAnotherKey, verdictOf } from "./key-failure.ts";
import type { Candidate } from "./routing/candidate.ts";
import type { AttemptFailure } from "./upstream/classify-failure.ts";

/**
 * The candidate as it can be sent to, with its provider key taken for the request and opened; undefined where
 * nothing is left of the key, or another key at the same place has met a failure that no key mends.
 */
export function takeKey(execution: Execution, candidate: Candidate): Candidate | undefined {
  const { deps, call, failed, inputTokens, unsayable } = execution;
  const { credential, route, model } = candidate;
  if (credential === undefined) return candidate;
  const isHopeless = failed.some(
    ({ record, failure }) =>
      record.provider === route.provider.id &&
      record.model === model.id &&
      !isMendedByAnotherKey(failure),
  );
  if (isHopeless) return undefined;
  if (
    deps.providerKeys.take(
      call.generationId,
      credential,
      listCeiling(candidate, { inputTokens, ...call.asks }),
    )
  ) {
    return deps.openedRoutes.open(candidate);
  }
  const message = `Nothing is left of the quota of the provider key for ${route.provider.name}.`;
  unsayable.push(new GatewayError("no_upstream", message, { param: "model" }));
  return undefined;
}

/** A failure as it is judged with the key that was sent, which learns of it and is given back. */
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

/** Tells a provider key that it served; false where the candidate has none, and the platform's own health is concerned. */
export function noteKeyServed(deps: InferenceDependencies, { credential }: Candidate): boolean {
  if (credential === undefined) return false;
  deps.providerKeys.note(credential, { kind: "served" });
  return true;
}

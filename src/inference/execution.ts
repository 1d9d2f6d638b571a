import type { AttemptRecord } from "../insights/generation-record.ts";
import type { GatewayError } from "../platform/lib/errors.ts";
import type { MeteredUsage } from "./canonical/usage.ts";
import type { Loss } from "./canonical/loss.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import type { FailedAttempt } from "./failure-error.ts";
import type { InferenceCall } from "./inference-call.ts";
import type { WholeAnswer } from "./interpret/interpretation.ts";
import type { ModelFallback } from "./interpret/model-fallback.ts";
import type { RequestTiming } from "./observer.ts";
import type { RelayedStream } from "./relayed-stream.ts";
import { sessionOf } from "./plan-call.ts";
import type { Candidate, LeftOut } from "./routing/candidate.ts";
import type { Settled } from "./settle.ts";
import type { Allowance } from "./take-hold.ts";
import type { Lifeline } from "./upstream/lifeline.ts";

/** Everything that an answer, whole or streamed, is accompanied by. */
export interface Served {
  candidate: Candidate;
  /** What the translation to the upstream's dialect dropped or changed, and of a whole answer what the client's cannot carry. */
  losses: readonly Loss[];
  attempts: readonly AttemptRecord[];
  /** The balance that admission saw, in nano-USD; undefined when nothing had to be paid. */
  balanceAtAdmissionNano: bigint | undefined;
  fallback: ModelFallback | undefined;
  /** The cap that the provider was given in place of a larger one, since the caller bears no more; undefined where none was lowered. */
  outputCap: number | undefined;
  /** Another provider than before served the request's session. */
  sessionMoved: boolean;
  timing: Omit<RequestTiming, "settledMs">;
}

/** A whole answer, settled. */
export interface ServedWhole extends Served {
  kind: "whole";
  answer: WholeAnswer;
  settled: Settled;
  metered: MeteredUsage;
}

/** A stream whose first content has come. */
export interface ServedStream extends Served {
  kind: "stream";
  stream: RelayedStream;
}

/** What was lost of a request and of its answer, in one list. */
export const joinLosses = (
  asked: readonly Loss[],
  answered: readonly Loss[] | undefined,
): readonly Loss[] =>
  answered === undefined || answered.length === 0 ? asked : [...asked, ...answered];

/** What one execution carries from step to step. */
export interface Execution {
  deps: InferenceDependencies;
  call: InferenceCall;
  requestedModel: string;
  /** The model that was asked for is a routing preset. */
  viaRouter: boolean;
  /** The caller would rather be refused than lose a parameter (`provider.require_parameters`). */
  losesNothing: boolean;
  inputTokens: number;
  lifeline: Lifeline;
  candidates: readonly Candidate[];
  leftOut: readonly LeftOut[];
  failed: FailedAttempt[];
  /** The last candidate whose model failed at its answer, with what its provider counted for that. */
  consumed: { candidate: Candidate; metered: MeteredUsage } | undefined;
  /** Candidates that were not asked, since their providers have no retry budget left. */
  heldBack: LeftOut[];
  /** Candidates that were not asked, since the request cannot be said to them. */
  unsayable: GatewayError[];
  balanceAtAdmissionNano: bigint | undefined;
  /** The largest window that the request did not fit, in tokens; undefined while no provider said so. */
  overflownTokens: number | undefined;
  /** What is held of the worst case, where that was too dear to be held whole. */
  allowance: Allowance | undefined;
  firstSendMs: number;
  /** A provider has answered with success, so it may charge for the input. */
  accepted: boolean;
}

/** The fallback that a client is told of: only where another model than the one asked for serves. */
export function fallbackOf(
  execution: Execution,
  candidate: Candidate,
  attempts: readonly AttemptRecord[],
): ModelFallback | undefined {
  if (candidate.model.id === execution.requestedModel || execution.viaRouter) return undefined;
  const reason =
    execution.failed.find(({ record }) => record.model === execution.requestedModel)?.failure
      .reason ?? "not_attempted";
  return { requestedModel: execution.requestedModel, reason, attempts };
}

/** Remembers who serves the request's session; true when another provider did before. */
export function noteSession(
  { deps, call, requestedModel }: Execution,
  candidate: Candidate,
): boolean {
  const session = sessionOf(call);
  return (
    session !== undefined && deps.sessions.recordServed(session, { requestedModel, candidate })
  );
}

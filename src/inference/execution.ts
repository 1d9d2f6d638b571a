import type { AttemptRecord } from "../insights/generation-record.ts";
import type { MeteredUsage } from "./canonical/usage.ts";
import type { ChatCall } from "./chat-call.ts";
import type { ChatStream } from "./chat-stream.ts";
import type { WholeAnswer } from "./chat-whole.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import type { FailedAttempt } from "./failure-error.ts";
import type { ModelFallback } from "./fallback-block.ts";
import type { RequestTiming } from "./observer.ts";
import type { Candidate } from "./routing/candidate.ts";
import type { Settled } from "./settle.ts";
import type { Lifeline } from "./upstream/lifeline.ts";

/** Everything that an answer, whole or streamed, is accompanied by. */
export interface Served {
  candidate: Candidate;
  attempts: readonly AttemptRecord[];
  /** The balance that admission saw, in nano-USD; undefined when nothing had to be paid. */
  balanceAtAdmissionNano: bigint | undefined;
  fallback: ModelFallback | undefined;
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
  stream: ChatStream;
}

/** What one execution carries from step to step. */
export interface Execution {
  deps: InferenceDependencies;
  call: ChatCall;
  requestedModel: string;
  inputTokens: number;
  lifeline: Lifeline;
  candidates: readonly Candidate[];
  failed: FailedAttempt[];
  balanceAtAdmissionNano: bigint | undefined;
  firstSendMs: number;
  /** A provider has answered with success, so it may charge for the input. */
  accepted: boolean;
}

/** The fallback that a client is told of: only where another model than the one asked for serves. */
export function fallbackOf(execution: Execution, candidate: Candidate, attempts: readonly AttemptRecord[]): ModelFallback | undefined {
  if (candidate.model.id === execution.requestedModel) return undefined;
  const reason = execution.failed.find(({ record }) => record.model === execution.requestedModel)?.failure.reason ?? "not_attempted";
  return { requestedModel: execution.requestedModel, reason, attempts };
}

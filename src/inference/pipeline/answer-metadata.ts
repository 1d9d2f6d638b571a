import type { AttemptRecord } from "../../insights/generation-record.ts";
import { usdFromNano, usdSixDecimals } from "../../platform/kernel/money.ts";
import type { Loss } from "../canonical/request.ts";
import type { InferenceCall } from "./inference-call.ts";
import type { RequestTiming, ServedWhole, Settled } from "./served-answer.ts";
import type { Execution } from "./execution.ts";
import type { Candidate } from "../routing/candidate.ts";
import { lowerBrandHeader } from "../../platform/kernel/brand.ts";
import type { ModelFallback } from "../canonical/response.ts";

/**
 * Returns the JSON text of the metadata object in a stream's final frame (contract:
 * `service_metadata`).
 */
export function metadataText(served: {
  call: InferenceCall;
  candidate: Candidate;
  settled: Settled;
  attempts: readonly AttemptRecord[];
  timing: RequestTiming;
  /**
   * The parts of the answer that the client's dialect could not carry. They are reported here
   * because a stream's headers have been sent by then.
   */
  answerLosses?: readonly Loss[] | undefined;
}): string {
  const { call, candidate, settled, attempts, timing, answerLosses = [] } = served;
  const { provider } = candidate.route;
  return JSON.stringify({
    requestId: call.traceId,
    model: candidate.model.id,
    upstream: {
      provider: provider.name,
      backend: provider.id,
      latencyMs: Math.round(timing.upstreamEndMs - timing.firstSendMs),
    },
    timings: timingsOf({ ...timing, endMs: timing.settledMs, attempts }),
    ...(answerLosses.length > 0 && { translationLoss: answerLosses.map(({ field }) => field) }),
    // As in the headers of whole answers, a free request reports no balance: nothing was charged.
    ...(call.wantsBalance && !settled.free
      ? {
          creditsCharged: usdFromNano(settled.chargedNano),
          balanceAfterDebit: usdSixDecimals(settled.balanceAfterNano),
        }
      : {}),
  });
}

const rounded = (milliseconds: number): number => Math.round(Math.max(0, milliseconds) * 100) / 100;

/**
 * The milliseconds that a request spent in each phase (contract: `Server-Timing` and `timings` of
 * the metadata frame).
 */
interface Timings {
  /** The gateway's own work before the first upstream call. */
  gw: number;
  upstream: { provider: string; dur: number }[];
  /** The gateway's own work after that: between attempts, and after the upstream's last byte. */
  post: number;
  /** The sum of all parts. */
  total: number;
}

/**
 * Computes the timings of a request. `post` is all time after the first attempt began that no
 * attempt used, so that the parts add up to the total.
 */
export function timingsOf(marks: {
  startedMs: number;
  firstSendMs: number;
  endMs: number;
  attempts: readonly AttemptRecord[];
}): Timings {
  const gw = rounded(marks.firstSendMs - marks.startedMs);
  const upstream = marks.attempts.map(({ provider, durationMs }) => ({
    provider,
    dur: rounded(durationMs),
  }));
  const asked = upstream.reduce((sum, { dur }) => sum + dur, gw);
  const post = rounded(marks.endMs - marks.startedMs - asked);
  return { gw, upstream, post, total: rounded(asked + post) };
}

/** Returns the value of the `Server-Timing` header (W3C Server Timing). */
export function serverTimingText({ gw, upstream, post, total }: Timings): string {
  let text = `gw;dur=${decimals(gw)}`;
  for (const { provider, dur } of upstream)
    text += `, upstream;dur=${decimals(dur)};desc="${provider.replace(/["\\]/g, "")}"`;
  return `${text}, post;dur=${decimals(post)}, total;dur=${decimals(total)}`;
}

/** Returns the text of a number with at most two decimals; much cheaper than that of any fraction. */
function decimals(value: number): string {
  const hundredths = Math.round(value * 100);
  const rest = hundredths % 100;
  const whole = (hundredths - rest) / 100;
  if (rest === 0) return `${whole}`;
  return rest % 10 === 0 ? `${whole}.${rest / 10}` : `${whole}.${rest < 10 ? "0" : ""}${rest}`;
}

const names = {
  model: lowerBrandHeader("Model"),
  upstreamModel: lowerBrandHeader("Upstream-Model"),
  providerChain: lowerBrandHeader("Provider-Chain"),
  credentialSource: lowerBrandHeader("Credential-Source"),
  requestedModel: lowerBrandHeader("Requested-Model"),
  fallbackReason: lowerBrandHeader("Fallback-Reason"),
};

/**
 * Encodes a name for use in a header (RFC 9110, 5.5): characters that are not printable ASCII are
 * percent-encoded.
 */
export const headerText = (name: string): string =>
  name.toWellFormed().replace(/[^\x20-\x7e]+/g, encodeURIComponent);

/** The parts of a failed execution that are read here. */
type Failed = Pick<Execution, "requestedModel" | "viaRouter" | "failed" | "firstSendMs"> & {
  deps: Pick<Execution["deps"], "clock">;
  call: Pick<Execution["call"], "startedMs">;
};

/**
 * Returns the headers of an error that name the providers asked before it, as on served answers;
 * none where no provider was asked.
 */
export function failedHeaders(
  execution: Failed,
  attempts: readonly AttemptRecord[] = execution.failed.map(({ record }) => record),
): Record<string, string> {
  const { deps, call, firstSendMs } = execution;
  const last = attempts.at(-1);
  if (last === undefined) return {};
  const timings = timingsOf({
    startedMs: call.startedMs,
    firstSendMs,
    endMs: deps.clock.monotonicMs(),
    attempts,
  });
  const fallback = fallbackOf(execution, attempts);
  return {
    [names.model]: headerText(last.model),
    [names.upstreamModel]: headerText(last.upstreamModel),
    [names.credentialSource]: last.credentialSource ?? "platform",
    [names.providerChain]: attempts.map(({ provider }) => provider).join("->"),
    "server-timing": serverTimingText(timings),
    ...(fallback && {
      [names.requestedModel]: headerText(fallback.requestedModel),
      [names.fallbackReason]: fallback.reason,
    }),
  };
}

/**
 * Returns whether an answer omits `usage.cost`, as answers of free models do (contract: `POST
 * /embeddings`): the model is free or has no price. An answer that a provider key paid for has a
 * cost of 0.
 */
export const showsNoCost = ({
  settled,
  candidate: { credential, route },
}: Pick<ServedWhole, "settled" | "candidate">): boolean =>
  settled.free && (credential === undefined || route.price === undefined);

/** Joins the losses of a request and of its answer in one list. */
export const joinLosses = (
  asked: readonly Loss[],
  answered: readonly Loss[] | undefined,
): readonly Loss[] =>
  answered === undefined || answered.length === 0 ? asked : [...asked, ...answered];

/**
 * Returns the fallback that a client sees: only where the last attempt was at another model than the
 * requested one.
 */
export function fallbackOf(
  { requestedModel, viaRouter, failed }: Pick<Execution, "requestedModel" | "viaRouter" | "failed">,
  attempts: readonly AttemptRecord[],
): ModelFallback | undefined {
  if (viaRouter || attempts.at(-1)?.model === requestedModel) return undefined;
  const reason =
    failed.find(({ record }) => record.model === requestedModel)?.failure.reason ?? "not_attempted";
  return { requestedModel, reason, attempts };
}

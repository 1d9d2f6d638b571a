import type { AttemptRecord } from "../../insights/generation-record.ts";
import { usdFromNano, usdSixDecimals } from "../../platform/kernel/money.ts";
import type { Loss } from "../canonical/request.ts";
import type { InferenceCall } from "./inference-call.ts";
import type { RequestTiming, Execution, ServedWhole } from "./execution.ts";
import type { Candidate } from "../routing/candidate.ts";
import type { Settled } from "./settle.ts";
import { lowerBrandHeader } from "../../platform/kernel/brand.ts";

/**
 * JSON text of the metadata object on a stream's final frame (contract: `service_metadata` fields).
 */
export function metadataText(served: {
  call: InferenceCall;
  candidate: Candidate;
  settled: Settled;
  attempts: readonly AttemptRecord[];
  timing: RequestTiming;
  /**
   * What the client's dialect could not carry of the answer; the headers of a stream are gone by
   * then.
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
    // As with the headers of whole answers: a free request was not charged, so there is nothing to
    // tell.
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
 * Where a request's time went, in milliseconds (contract: `Server-Timing` and the metadata frame's
 * `timings`).
 */
interface Timings {
  /** Own work before the first upstream call. */
  gw: number;
  upstream: { provider: string; dur: number }[];
  /** Own work after that: between attempts, and after the upstream's last byte. */
  post: number;
  /** The sum of all parts. */
  total: number;
}

/**
 * Times from the marks of a request: what is no attempt and came after the first began is `post`,
 * so that the parts make the total.
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

/** The header's text (W3C Server Timing). */
export function serverTimingText({ gw, upstream, post, total }: Timings): string {
  let text = `gw;dur=${gw}`;
  for (const { provider, dur } of upstream)
    text += `, upstream;dur=${dur};desc="${provider.replace(/["\\]/g, "")}"`;
  return `${text}, post;dur=${post}, total;dur=${total}`;
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
 * A name as a header can carry it (RFC 9110, 5.5): what is not printable ASCII is percent-encoded.
 */
export const headerText = (name: string): string =>
  name.toWellFormed().replace(/[^\x20-\x7e]+/g, encodeURIComponent);

/** What is read of the execution that failed. */
type Failed = Pick<Execution, "requestedModel" | "viaRouter" | "failed" | "firstSendMs"> & {
  deps: Pick<Execution["deps"], "clock">;
  call: Pick<Execution["call"], "startedMs">;
};

/**
 * What an error says of the providers that were asked before it, as served answers do; nothing
 * where none was.
 */
export function failedHeaders(
  { deps, call, requestedModel, viaRouter, failed, firstSendMs }: Failed,
  attempts: readonly AttemptRecord[],
): Record<string, string> {
  const last = attempts.at(-1);
  if (last === undefined) return {};
  const timings = timingsOf({
    startedMs: call.startedMs,
    firstSendMs,
    endMs: deps.clock.monotonicMs(),
    attempts,
  });
  const reason =
    failed.find(({ record }) => record.model === requestedModel)?.failure.reason ?? "not_attempted";
  return {
    [names.model]: headerText(last.model),
    [names.upstreamModel]: headerText(last.upstreamModel),
    [names.credentialSource]: last.credentialSource ?? "platform",
    [names.providerChain]: attempts.map(({ provider }) => provider).join("->"),
    "server-timing": serverTimingText(timings),
    ...(last.model === requestedModel || viaRouter
      ? {}
      : {
          [names.requestedModel]: headerText(requestedModel),
          [names.fallbackReason]: reason,
        }),
  };
}

/**
 * Whether an answer has no `usage.cost` where free models show none (contract: `POST /embeddings`):
 * its model is free, or has no price. What a provider key paid has a cost of 0.
 */
export const showsNoCost = ({
  settled,
  candidate: { credential, route },
}: Pick<ServedWhole, "settled" | "candidate">): boolean =>
  settled.free && (credential === undefined || route.price === undefined);

import type { AttemptRecord } from "../insights/generation-record.ts";
import { lowerBrandHeader } from "../platform/lib/brand.ts";
import type { Execution } from "./execution.ts";
import { serverTimingText, timingsOf } from "./server-timing.ts";

const names = {
  model: lowerBrandHeader("Model"),
  upstreamModel: lowerBrandHeader("Upstream-Model"),
  providerChain: lowerBrandHeader("Provider-Chain"),
  credentialSource: lowerBrandHeader("Credential-Source"),
  requestedModel: lowerBrandHeader("Requested-Model"),
  fallbackReason: lowerBrandHeader("Fallback-Reason"),
};

/** A name as a header can carry it (RFC 9110, 5.5): what is not printable ASCII is percent-encoded. */
export const headerText = (name: string): string =>
  name.toWellFormed().replace(/[^\x20-\x7e]+/g, encodeURIComponent);

/** What is read of the execution that failed. */
type Failed = Pick<Execution, "requestedModel" | "viaRouter" | "failed" | "firstSendMs"> & {
  deps: Pick<Execution["deps"], "clock">;
  call: Pick<Execution["call"], "startedMs">;
};

/** What an error says of the providers that were asked before it, as served answers do; nothing where none was. */
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

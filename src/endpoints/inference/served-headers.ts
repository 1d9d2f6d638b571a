import type { Served } from "../../inference/execution.ts";
import { serverTimingText, timingsOf } from "../../inference/server-timing.ts";
import type { Settled } from "../../inference/settle.ts";
import { brandHeader } from "../../platform/lib/brand.ts";
import { usdFromNano, usdSixDecimals } from "../../platform/lib/money.ts";

const names = {
  model: brandHeader("Model"),
  upstreamModel: brandHeader("Upstream-Model"),
  providerChain: brandHeader("Provider-Chain"),
  credentialSource: brandHeader("Credential-Source"),
  requestedModel: brandHeader("Requested-Model"),
  fallbackReason: brandHeader("Fallback-Reason"),
  balanceAtAdmission: brandHeader("Credits-Balance-At-Admission"),
  balanceAfterDebit: brandHeader("Credits-Balance-After-Debit"),
  creditsCharged: brandHeader("Credits-Charged"),
};

/** A name as a header can carry it (RFC 9110, 5.5): what is not printable ASCII is percent-encoded. */
const headerText = (name: string): string => name.toWellFormed().replace(/[^\x20-\x7e]+/g, encodeURIComponent);

/** Nano-USD as plain decimal text of USD, whatever its size: `String` would write small charges with an exponent. */
const usdText = (nano: bigint): string => usdFromNano(nano).toFixed(9).replace(/\.?0+$/, "");

/** What every served inference response says of who served it (contract: "Response headers"). */
export function servedHeaders(served: Served, marks: { endMs: number; upstreamEndMs: number }): Record<string, string> {
  const { candidate, attempts, fallback, balanceAtAdmissionNano } = served;
  const headers: Record<string, string> = {
    [names.model]: headerText(candidate.model.id),
    [names.upstreamModel]: headerText(candidate.route.upstreamModel),
    [names.providerChain]: attempts.length === 1 ? candidate.route.provider.id : attempts.map(({ provider }) => provider).join("->"),
    [names.credentialSource]: "platform",
    "server-timing": serverTimingText(timingsOf({ ...served.timing, ...marks, attempts })),
  };
  if (balanceAtAdmissionNano !== undefined) headers[names.balanceAtAdmission] = String(usdSixDecimals(balanceAtAdmissionNano));
  if (fallback !== undefined) {
    headers[names.requestedModel] = headerText(fallback.requestedModel);
    headers[names.fallbackReason] = fallback.reason;
  }
  return headers;
}

/** The charge and the balance after it, for callers that asked; nothing for free requests. */
export function settledHeaders(settled: Settled): Record<string, string> {
  if (settled.free) return {};
  return {
    [names.creditsCharged]: usdText(settled.chargedNano),
    [names.balanceAfterDebit]: String(usdSixDecimals(settled.balanceAfterNano)),
  };
}

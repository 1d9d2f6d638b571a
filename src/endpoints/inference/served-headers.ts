import type { Loss } from "../../inference/canonical/loss.ts";
import type { UpstreamRoute } from "../../inference/catalog/model.ts";
import type { Served } from "../../inference/execution.ts";
import type { Candidate } from "../../inference/routing/candidate.ts";
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
  translationLoss: brandHeader("Translation-Loss"),
  sessionMoved: brandHeader("Session-Moved"),
};

/** A name as a header can carry it (RFC 9110, 5.5): what is not printable ASCII is percent-encoded. */
const headerText = (name: string): string => name.toWellFormed().replace(/[^\x20-\x7e]+/g, encodeURIComponent);

/** Nano-USD as plain decimal text of USD, whatever its size: `String` would write small charges with an exponent. */
const usdText = (nano: bigint): string => usdFromNano(nano).toFixed(9).replace(/\.?0+$/, "");

/** Headers that are the same for every answer of a model on a route; copying them costs less than setting each. */
const routeHeaders = new WeakMap<UpstreamRoute, Headers>();

function headersOfRoute({ model, route, credential }: Candidate): Headers {
  let headers = routeHeaders.get(route);
  if (headers === undefined) {
    headers = new Headers({
      [names.model]: headerText(model.id),
      [names.upstreamModel]: headerText(route.upstreamModel),
      [names.credentialSource]: credential?.source ?? "platform",
    });
    routeHeaders.set(route, headers);
  }
  return headers;
}

/** Characters that the names of losses may take; beyond them the record alone has the list. */
const lossCharactersMax = 2_000;

/** The fields that a translation dropped or changed, as a list of names (RFC 9110, 5.6.1). */
function lossText(losses: readonly Loss[]): string {
  let text = "";
  for (const field of new Set(losses.map((loss) => loss.field))) {
    const more = text === "" ? headerText(field) : `${text}, ${headerText(field)}`;
    if (more.length > lossCharactersMax) return `${text}, ...`;
    text = more;
  }
  return text;
}

/**
 * What every served inference response says of who served it (contract: "Response headers"), on top of
 * the headers that the request has gathered so far.
 */
export function servedHeaders(
  served: Served,
  { gathered, endMs }: { gathered: Readonly<Record<string, string>>; endMs: number },
): Headers {
  const { candidate, attempts, fallback, balanceAtAdmissionNano } = served;
  const headers = new Headers(headersOfRoute(candidate));
  for (const name in gathered) headers.set(name, gathered[name] ?? "");
  headers.set(names.providerChain, attempts.length === 1 ? candidate.route.provider.id : attempts.map(({ provider }) => provider).join("->"));
  headers.set("server-timing", serverTimingText(timingsOf({ ...served.timing, endMs, attempts })));
  if (balanceAtAdmissionNano !== undefined) headers.set(names.balanceAtAdmission, String(usdSixDecimals(balanceAtAdmissionNano)));
  if (served.losses.length > 0) headers.set(names.translationLoss, lossText(served.losses));
  if (served.sessionMoved) headers.set(names.sessionMoved, "true");
  if (fallback !== undefined) {
    headers.set(names.requestedModel, headerText(fallback.requestedModel));
    headers.set(names.fallbackReason, fallback.reason);
  }
  return headers;
}

/** The charge and the balance after it, for callers that asked; nothing for free requests. */
export function addSettledHeaders(headers: Headers, settled: Settled): void {
  if (settled.free) return;
  headers.set(names.creditsCharged, usdText(settled.chargedNano));
  headers.set(names.balanceAfterDebit, String(usdSixDecimals(settled.balanceAfterNano)));
}

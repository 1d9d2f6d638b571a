import type { Loss } from "../../inference/canonical/loss.ts";
import type { UpstreamRoute } from "../../inference/catalog/model.ts";
import type { Served } from "../../inference/execution.ts";
import { headerText } from "../../inference/failed-headers.ts";
import type { Candidate } from "../../inference/routing/candidate.ts";
import { serverTimingText, timingsOf } from "../../inference/server-timing.ts";
import type { Settled } from "../../inference/settle.ts";
import { brandHeader, lowerBrandHeader } from "../../platform/lib/brand.ts";
import { usdSixDecimals, usdText } from "../../platform/lib/money.ts";

const names = {
  model: lowerBrandHeader("Model"),
  upstreamModel: lowerBrandHeader("Upstream-Model"),
  providerChain: lowerBrandHeader("Provider-Chain"),
  credentialSource: lowerBrandHeader("Credential-Source"),
  requestedModel: lowerBrandHeader("Requested-Model"),
  fallbackReason: lowerBrandHeader("Fallback-Reason"),
  balanceAtAdmission: lowerBrandHeader("Credits-Balance-At-Admission"),
  balanceAfterDebit: lowerBrandHeader("Credits-Balance-After-Debit"),
  creditsCharged: lowerBrandHeader("Credits-Charged"),
  translationLoss: lowerBrandHeader("Translation-Loss"),
  sessionMoved: lowerBrandHeader("Session-Moved"),
  outputCap: lowerBrandHeader("Output-Cap"),
};

/** The header of an answer whose length was bounded by what its caller can bear, described for programs. */
export const outputCapHeader: Readonly<Record<string, string>> = {
  [brandHeader("Output-Cap")]:
    "The output cap that the provider was given in place of a larger one, since the key and the balance bear no " +
    "more. Where fewer than 16 tokens can be paid the answer is 402 insufficient_balance with metadata {reason, worst_case_usd, " +
    "available_usd, held_usd, affordable_output_tokens}, and Retry-After while other requests hold what is missing.",
};

/** Headers that are the same for every answer of a model on a route. */
const routeHeaders = new WeakMap<UpstreamRoute, Record<string, string>>();

function headersOfRoute({ model, route, credential }: Candidate): Record<string, string> {
  let headers = routeHeaders.get(route);
  if (headers === undefined) {
    headers = {
      [names.model]: headerText(model.id),
      [names.upstreamModel]: headerText(route.upstreamModel),
      [names.credentialSource]: credential?.source ?? "platform",
    };
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
): Record<string, string> {
  const { candidate, attempts, fallback, balanceAtAdmissionNano } = served;
  const headers = { ...headersOfRoute(candidate), ...gathered };
  headers[names.providerChain] =
    attempts.length === 1
      ? candidate.route.provider.id
      : attempts.map(({ provider }) => provider).join("->");
  headers["server-timing"] = serverTimingText(timingsOf({ ...served.timing, endMs, attempts }));
  if (balanceAtAdmissionNano !== undefined)
    headers[names.balanceAtAdmission] = String(usdSixDecimals(balanceAtAdmissionNano));
  if (served.losses.length > 0) headers[names.translationLoss] = lossText(served.losses);
  if (served.outputCap !== undefined) headers[names.outputCap] = String(served.outputCap);
  if (served.sessionMoved) headers[names.sessionMoved] = "true";
  if (fallback !== undefined) {
    headers[names.requestedModel] = headerText(fallback.requestedModel);
    headers[names.fallbackReason] = fallback.reason;
  }
  return headers;
}

/** The charge and the balance after it, for callers that asked; nothing for free requests. */
export function addSettledHeaders(headers: Record<string, string>, settled: Settled): void {
  if (settled.free) return;
  headers[names.creditsCharged] = usdText(settled.chargedNano);
  headers[names.balanceAfterDebit] = String(usdSixDecimals(settled.balanceAfterNano));
}

import {
  tagNamePattern,
  type GenerationDetail,
  type GenerationRecord,
  timeOfId,
} from "../../../insights/generation-record.ts";
import { teamOfKey } from "../../../identity/keys/caller.ts";
import type { InferenceDependencies, Execution } from "../execution.ts";
import type { CallOrigin, InferenceCall } from "../inference-call.ts";
import { requiresZeroRetention } from "./keep-content.ts";
import type { Priced, Settlement } from "./settlement.ts";
import { effectivePrice, type PriceRow, type PriceVector } from "../../../billing/ledger/price.ts";
import type { PostedCharge } from "../../../billing/ledger/ledger-port.ts";
import type { GatewayError } from "../../../platform/kernel/errors.ts";
import { nanoFromPico, usdPerMillionText } from "../../../platform/kernel/money.ts";
import { totalInputTokens, totalOutputTokens } from "../../../platform/kernel/usage.ts";
import { tokensPastCap } from "../hold/output-watch.ts";
import { type PlanTrail, routingTrail } from "../plan/plan-call.ts";

/** Returns the record of a settled request. */
export function generationRecord(
  deps: InferenceDependencies,
  { settlement, posted, priced }: { settlement: Settlement; posted: PostedCharge; priced: Priced },
): GenerationRecord {
  const { call, candidate, metered, timing } = settlement;
  const nowMs = deps.clock.monotonicMs();
  const promptTokens = totalInputTokens(metered.usage);
  return {
    id: call.generationId,
    createdAtMs: timeOfId(call.generationId),
    workspaceId: call.caller.workspace.id,
    keyId: call.caller.key.id,
    surface: call.recordedAs,
    requestedModel: call.requestedAs ?? settlement.requestedModel,
    model: candidate.model.id,
    provider: candidate.route.provider.id,
    upstreamModel: candidate.route.upstreamModel,
    upstreamId: providerText(settlement.upstreamId),
    status: settlement.status,
    finishReason: providerText(settlement.finishReason),
    streamed: settlement.streamed,
    promptTokens,
    completionTokens: totalOutputTokens(metered.usage),
    costNanoUsd: posted.chargedNano,
    latencyMs: Math.round(nowMs - timing.startedMs),
    attempts: settlement.attempts,
    firstTokenMs:
      timing.firstContentMs === null ? null : Math.round(timing.firstContentMs - timing.startedMs),
    detail: detailOf(deps, settlement, { priced, promptTokens, posted }),
  };
}

/** Returns the detail that explains a charge: first what every record has, then what few have. */
function detailOf(
  deps: Pick<InferenceDependencies, "privacyOf">,
  settlement: Settlement,
  {
    priced: { price, usage },
    promptTokens,
    posted,
  }: { priced: Priced; promptTokens: number; posted: PostedCharge },
): GenerationDetail {
  const { call, candidate, metered, routing, losses, outputCap } = settlement;
  const { credential } = candidate;
  const detail: GenerationDetail = {
    usage: usage as Record<string, number | undefined>,
    priceVersion: price?.version ?? null,
    price: priceText(price, promptTokens),
    holdNanoUsd: String(posted.heldNano),
  };
  if (posted.chargeId !== undefined) detail.chargeId = posted.chargeId;
  if (call.leg !== undefined) detail.serviceTier = "batch";
  if (outputCap !== undefined) detail.outputCap = outputCap;
  if (credential === undefined && price !== undefined) notePastCap(detail, settlement, price);
  if (metered.estimated) detail.usageEstimated = true;
  if (metered.clamped) detail.usageClamped = true;
  if (metered.picture !== undefined) detail.picture = metered.picture;
  if (metered.providerCostUsd !== undefined) detail.upstreamCostUsd = metered.providerCostUsd;
  if (credential !== undefined) {
    // Nothing else is recorded of donated keys.
    detail.credentialSource = credential.source;
    if (credential.source === "own_byok") detail.providerKeyId = credential.key.id;
  }
  if (posted.uncollectedNano > 0n) detail.uncollectedNanoUsd = String(posted.uncollectedNano);
  if (routing !== undefined) detail.routing = routing;
  if (losses.length > 0)
    detail.translationLosses = losses.map(({ field, reason }) => ({ field, reason }));
  noteOrigin(deps, { detail, call });
  return detail;
}

/** Notes by how much a provider passed its output cap, if it did, at the price of output. */
function notePastCap(detail: GenerationDetail, settlement: Settlement, price: PriceRow): void {
  const tokens = tokensPastCap(settlement.call, settlement);
  if (tokens === undefined) return;
  const { outputTokens = 0n } = effectivePrice(price, totalInputTokens(settlement.metered.usage));
  detail.tokensPastCap = tokens;
  detail.nanoUsdPastCap = String(nanoFromPico(BigInt(tokens) * outputTokens));
}

/** The JSON forms of price vectors, which are the same objects for as long as a catalog lives. */
const priceTexts = new WeakMap<PriceVector, Record<string, string>>();

function priceText(row: PriceRow | undefined, inputTokens: number): Record<string, string> | null {
  if (row === undefined) return null;
  const vector = effectivePrice(row, inputTokens);
  let text = priceTexts.get(vector);
  if (text === undefined) {
    text = Object.fromEntries(
      Object.entries(vector).map(([part, price]) => [part, usdPerMillionText(price as bigint)]),
    );
    priceTexts.set(vector, text);
  }
  return text;
}

/**
 * Cuts a provider's text to the length that is kept, and removes characters that a database refuses
 * (U+0000 on Postgres).
 */
const providerText = (text: string | null): string | null =>
  text === null || (text.length <= 200 && !/\p{Cc}/u.test(text))
    ? text
    : text.slice(0, 200).replace(/\p{Cc}/gu, "");

type RecordDependencies = Pick<InferenceDependencies, "clock" | "unsettled" | "privacyOf">;

/** The fields in which unsettled records differ. */
interface Unsettled
  extends Pick<GenerationRecord, "status" | "requestedModel">,
    Partial<Pick<GenerationRecord, "model" | "provider" | "upstreamModel" | "attempts">> {
  call: NotedCall & { streamed: boolean };
  routing?: GenerationDetail["routing"];
  error?: GatewayError;
}

/** Writes the record of a request that costs nothing; its caller does not wait for it. */
function writeUnsettled(
  { clock, unsettled, privacyOf }: RecordDependencies,
  { call, routing, error, ...facts }: Unsettled,
): void {
  const latencyMs = clock.monotonicMs() - call.startedMs;
  const detail: GenerationDetail = { usage: {}, priceVersion: null, price: null, holdNanoUsd: "0" };
  if (routing !== undefined) detail.routing = routing;
  if (error !== undefined) detail.error = { code: error.code, status: error.status };
  noteOrigin({ privacyOf }, { detail, call });
  unsettled.write({
    model: facts.requestedModel,
    provider: "",
    upstreamModel: "",
    attempts: [],
    ...facts,
    id: call.generationId,
    createdAtMs: timeOfId(call.generationId),
    latencyMs: Math.round(latencyMs),
    workspaceId: call.caller.workspace.id,
    keyId: call.caller.key.id,
    surface: call.recordedAs,
    upstreamId: null,
    finishReason: null,
    streamed: call.streamed,
    promptTokens: 0,
    completionTokens: 0,
    costNanoUsd: 0n,
    firstTokenMs: null,
    detail,
  });
}

const streamedOf = (call: InferenceCall): Unsettled["call"] => ({
  ...call,
  streamed: call.requirements.stream,
});

/** Records a request that was sent to providers and answered by none. */
export function recordFailed(execution: Execution, error: GatewayError): void {
  const { deps, call, failed, requestedModel } = execution;
  const last = failed.at(-1)?.record;
  if (last === undefined && error.status < 500) return;
  writeUnsettled(deps, {
    call: streamedOf(call),
    status: "failed",
    requestedModel: call.requestedAs ?? requestedModel,
    error,
    routing: routingTrail(execution),
    attempts: failed.map(({ record }) => record),
    ...(last && { model: last.model, provider: last.provider, upstreamModel: last.upstreamModel }),
  });
}

/** Records a request that no route can serve. */
export function recordUnrouted(
  deps: RecordDependencies,
  { call, trail, error }: { call: InferenceCall; trail: PlanTrail; error: GatewayError },
): void {
  writeUnsettled(deps, {
    call: streamedOf(call),
    status: "failed",
    requestedModel: call.requestedAs ?? trail.requestedModel,
    error,
    routing: routingTrail({ candidates: [], heldBack: [], leftOut: trail.leftOut }),
  });
}

/** Records a request that was answered from a cache, under the provider whose answer was kept. */
export function recordCached(
  deps: RecordDependencies,
  {
    call,
    ...answer
  }: {
    call: Omit<Unsettled["call"], "streamed">;
    requestedModel: string;
    model: string;
    provider: string;
    upstreamModel: string;
  },
): void {
  writeUnsettled(deps, { call: { ...call, streamed: false }, status: "cached", ...answer });
}

/** The most characters that are kept of what a request says of its end user and its program. */
const senderCharactersMax = 256;

/** Returns a caller's text as it is kept, in one line; undefined for no text. */
function senderText(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const text = value
    .slice(0, senderCharactersMax)
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, "");
  return text === "" ? undefined : text;
}

/** Returns the end user that a request names. Chat and Responses have `metadata` for other things. */
function endUserOf({ body, recordedAs }: NotedCall): unknown {
  if (recordedAs !== "messages") return body["user"] ?? body["safety_identifier"];
  return (Object(body["metadata"]) as { user_id?: unknown }).user_id;
}

/** The most tags that are kept of a request. */
const tagsMax = 16;
/** The most characters that are kept of the value of a tag, as budgets count it. */
const tagCharactersMax = 200;

/** Returns the members of a request's metadata that name it, as they are kept; undefined for none. */
function keptTags({ metadata }: NotedCall): Readonly<Record<string, string>> | undefined {
  if (metadata === undefined) return undefined;
  const tags = Object.entries(metadata).flatMap(([name, value]) => {
    // The end user of Messages has a place of its own.
    if (name === "user_id" || !tagNamePattern.test(name)) return [];
    const text = senderText(typeof value === "number" ? String(value) : value);
    return text === undefined ? [] : [[name, text.slice(0, tagCharactersMax)] as const];
  });
  return tags.length === 0 ? undefined : Object.fromEntries(tags.slice(0, tagsMax));
}

/** Notes whom a request is for, and its program, but not under zero data retention. */
function noteSender(
  deps: Pick<InferenceDependencies, "privacyOf">,
  { detail, call }: { detail: GenerationDetail; call: NotedCall },
): void {
  const externalUser = senderText(call.customer ?? endUserOf(call));
  const userAgent = senderText(call.userAgent);
  const tags = keptTags(call);
  if (externalUser === undefined && userAgent === undefined && tags === undefined) return;
  if (requiresZeroRetention(deps, call)) return;
  if (externalUser !== undefined) detail.externalUser = externalUser;
  if (userAgent !== undefined) detail.userAgent = userAgent;
  if (tags !== undefined) detail.tags = tags;
}

/** The parts of a call that its record notes. */
type NotedCall = CallOrigin & Pick<InferenceCall, "body" | "presetId" | "recordedAs">;

/** Notes where a request came from, as far as its caller said. */
function noteOrigin(
  deps: Pick<InferenceDependencies, "privacyOf">,
  { detail, call }: { detail: GenerationDetail; call: NotedCall },
): void {
  const team = teamOfKey(call.caller);
  if (team !== undefined) detail.team = team;
  if (call.origin !== undefined) detail.origin = call.origin;
  if (call.appTitle !== undefined) detail.appTitle = call.appTitle;
  if (call.presetId !== undefined) detail.presetId = call.presetId;
  if (call.sessionId !== undefined) detail.sessionId = call.sessionId;
  if (call.batchId !== undefined) detail.batchId = call.batchId;
  if (call.roundOf !== undefined) detail.calledBy = call.roundOf;
  if (call.traceParent !== undefined) detail.traceParent = call.traceParent;
  const { trace } = call.body;
  if (trace !== undefined) detail.trace = trace;
  noteSender(deps, { detail, call });
}

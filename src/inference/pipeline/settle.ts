import type { ProviderKeys } from "../../byok/provider-keys.ts";
import { noteShare } from "../../billing/customers/customer-book.ts";
import { chargedPrice, chargedUsage } from "../../billing/ledger/price-levels.ts";
import { balanceOf } from "../../billing/ledger/book/account-book.ts";
import {
  chargeFor,
  effectivePrice,
  type PriceRow,
  type PriceVector,
} from "../../billing/ledger/price.ts";
import type { PostedCharge, Posting } from "../../billing/ledger/ledger-port.ts";
import {
  generationRow,
  type AttemptRecord,
  type GenerationDetail,
  type GenerationRecord,
  timeOfId,
} from "../../insights/generation-record.ts";
import { customerAdds, senderAdds, usageAdds } from "../../insights/usage/usage-rollup.ts";
import type { CommitUnit } from "../../platform/storage/commit-queue.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { nanoFromPico, usdPerMillionText } from "../../platform/kernel/money.ts";
import type { Loss } from "../canonical/request.ts";
import { totalInputTokens, totalOutputTokens, type Usage } from "../../platform/kernel/usage.ts";
import { extrasOf } from "../dialects/shared/extras/charged-extras.ts";
import type { MeteredUsage } from "../canonical/response.ts";
import type { WholeAnswer } from "../dialects/shared/exchange.ts";
import type { InferenceDependencies, RequestTiming, Execution, ServedWhole } from "./execution.ts";
import { isFree } from "./hold/hold-ceiling.ts";
import { tokensPastCap } from "./hold/output-watch.ts";
import type { InferenceCall } from "./inference-call.ts";
import { type NotedCall, noteOrigin } from "./note-origin.ts";
import { sendersOf, shareOf, tagsOf } from "./hold/take-hold.ts";
import type { Candidate } from "../routing/candidate.ts";
import { noRoute, routingTrail, trailOf, type CallPlan } from "./plan-call.ts";

/** The facts with which an answer, whole or cut, is settled. */
export interface Settlement {
  call: InferenceCall;
  candidate: Candidate;
  /** The parts that the translation to the upstream's dialect dropped or changed. */
  losses: readonly Loss[];
  /** The output cap that the provider was given in place of a larger one. */
  outputCap: number | undefined;
  /** The reason for the routing; undefined where there was only one route. */
  routing: GenerationDetail["routing"];
  requestedModel: string;
  metered: MeteredUsage;
  finishReason: string | null;
  status: GenerationRecord["status"];
  streamed: boolean;
  /** Whether the gateway cut the answer because its provider passed the output cap. */
  passedCap: boolean;
  upstreamId: string | null;
  attempts: readonly AttemptRecord[];
  timing: Omit<RequestTiming, "settledMs">;
  /** Returns the rows that are committed with the charge, beside the record; absent for none. */
  rows?: ((posted: PostedCharge) => CommitUnit["inserts"]) | undefined;
}

/** A settled request and its charge, which is durable before this is returned. */
export interface Settled extends PostedCharge {
  free: boolean;
  /** Whether the caller's own provider key paid. */
  isByok: boolean;
  settledMs: number;
}

/**
 * Returns what the provider key that served has paid, at list price; 0 where the platform's
 * credential served.
 */
const listedNanoOf = (
  { candidate: { credential } }: Settlement,
  { price, usage }: Priced,
): bigint => (credential === undefined || price === undefined ? 0n : chargeFor(price, usage));

/** The price that a request is charged at, and the usage as it is charged. */
interface Priced {
  price: PriceRow | undefined;
  usage: Usage;
}

/** Returns the price and usage by which an answer is charged, at the levels that it reports. */
function pricedOf({ call, candidate: { route }, metered }: Settlement): Priced {
  const { price: row } = route;
  const { usage } = metered;
  if (row === undefined) return { price: row, usage };
  const sent = call.requirements.extrasAt?.(route);
  const asked = sent && extrasOf(sent);
  const charged = chargedUsage(row, { usage, asked });
  return {
    price: chargedPrice(row, {
      asked,
      served: metered.levels,
      usage: charged,
      picture: metered.picture,
    }),
    usage: charged,
  };
}

/**
 * Prices the usage, charges the hold and writes the record in one commit. Resolves when the charge
 * is durable; a free request does not wait, since nothing is charged. Throws `service_unavailable`
 * when the database refused the commit, which leaves nothing charged.
 */
export async function settle(
  deps: InferenceDependencies,
  settlement: Settlement,
): Promise<Settled> {
  const { candidate, call } = settlement;
  const free = call.unbilled === true || isFree(candidate);
  const priced = pricedOf(settlement);
  const { price, usage } = priced;
  const amountNano = free || price === undefined ? 0n : chargeFor(price, usage);
  const listedNano = listedNanoOf(settlement, priced);
  const posting = post(deps, { settlement, priced, amountNano, listedNano });
  if (amountNano > 0n || listedNano > 0n || posting.charge === undefined) {
    try {
      await posting.durable;
    } catch (error) {
      keepUncollected(deps, { settlement, priced, amountNano, posted: posting.charge });
      throw refused(error, { deps, call });
    }
  } else
    posting.durable.catch((error: unknown) => {
      keepUncollected(deps, { settlement, priced, amountNano, posted: posting.charge });
      deps.observer.settlementFailed(error, call.generationId);
    });
  const settledMs = deps.clock.monotonicMs();
  const { charge: posted } = posting;
  if (posted !== undefined) {
    const { record } = posted.rows;
    const { startedMs, firstSendMs, firstContentMs, upstreamEndMs } = settlement.timing;
    deps.observer.settled(record, {
      startedMs,
      firstSendMs,
      firstContentMs,
      upstreamEndMs,
      settledMs,
    });
    call.tokensUsed?.(record.promptTokens + record.completionTokens);
  }
  const chargedNano = posted?.chargedNano ?? 0n;
  return {
    free,
    settledMs,
    chargedNano,
    isByok: candidate.credential?.source === "own_byok",
    uncollectedNano: amountNano - chargedNano,
    heldNano: posted?.heldNano ?? 0n,
    balanceAfterNano:
      posted?.balanceAfterNano ?? balanceOf(deps.ledger.book.workspace(call.caller.workspace.id)),
  };
}

/**
 * Adds the row with the answer, for requests of the background, which commit it with their charge.
 * `serve` returns the answer as it is served once its charge is known.
 */
export function withAnswer<Ended extends Settlement & { answer: WholeAnswer }>(
  ended: Ended,
  serve: (settled: Settled) => ServedWhole,
): Ended {
  const { call, candidate, answer } = ended;
  const { line } = call;
  if (line === undefined || answer.spentOnReasoning) return ended;
  const rows: Settlement["rows"] = (posted) => {
    const isByok = candidate.credential?.source === "own_byok";
    const free = call.unbilled === true || isFree(candidate);
    return [line.rowOf(serve({ ...posted, free, isByok, settledMs: 0 }), call)];
  };
  return { ...ended, rows };
}

/** Adds the rows of requests of the background: with their answer, or of a charge without one. */
function addChargedRows(
  inserts: CommitUnit["inserts"][number][],
  { settlement: { call, rows }, posted }: { settlement: Settlement; posted: PostedCharge },
): void {
  if (rows !== undefined) inserts.push(...rows(posted));
  else if (call.line !== undefined) inserts.push(call.line.rowOf(undefined, call));
}

/** The rows of a settlement, with the record that one of them has. */
interface SettlementRows extends CommitUnit {
  record: GenerationRecord;
}

/** Charges the hold, and passes the charge, the record and their counters to the database. */
function post(
  deps: InferenceDependencies,
  {
    settlement,
    priced,
    amountNano,
    listedNano,
  }: { settlement: Settlement; priced: Priced; amountNano: bigint; listedNano: bigint },
): Posting<SettlementRows> {
  const {
    candidate: { credential },
    call: { generationId },
  } = settlement;
  const served = { ledger: deps.ledger, candidates: [settlement.candidate] };
  const share = shareOf(settlement.call, served);
  let counted: ReturnType<ProviderKeys["settle"]> | undefined;
  const posting = deps.ledger.post<SettlementRows>({
    holdId: generationId,
    amountNano,
    tags: () => tagsOf(settlement.call, { ...served, share }),
    // What counts towards limits that include callers' own keys.
    byokNano: credential?.source === "own_byok" ? listedNano : 0n,
    alongside: (posted) => {
      const record = generationRecord(deps, { settlement, posted, priced });
      noteShare(record, share);
      const senders = sendersOf(settlement.call, served);
      const usage = usageAdds(record);
      const adds =
        senders.length === 0 && share === undefined
          ? usage
          : [...usage, ...senderAdds(record, senders), ...customerAdds(record)];
      const inserts = [generationRow(record)];
      addChargedRows(inserts, { settlement, posted });
      if (credential === undefined) return { record, inserts, adds };
      // Counted once, also where the ledger asks for the rows again.
      counted ??= deps.providerKeys.settle(generationId, credential, listedNano);
      return { record, inserts, adds: [...adds, ...counted.adds] };
    },
  });
  // A key is given back what the database refused to write.
  if (credential !== undefined) posting.durable.catch(() => counted?.undo());
  return posting;
}

/** Keeps what the database refused, to be written without a charge when it takes commits again. */
function keepUncollected(
  deps: InferenceDependencies,
  {
    settlement,
    priced,
    amountNano,
    posted,
  }: {
    settlement: Settlement;
    priced: Priced;
    amountNano: bigint;
    posted: PostedCharge | undefined;
  },
): void {
  const {
    call: { caller, generationId },
  } = settlement;
  const lost = {
    chargedNano: 0n,
    uncollectedNano: amountNano,
    heldNano: posted?.heldNano ?? 0n,
    balanceAfterNano: 0n,
  };
  const record = generationRecord(deps, { settlement, posted: lost, priced });
  deps.uncollected.keep({
    chargeId: generationId,
    workspaceId: caller.workspace.id,
    keyId: caller.key.id,
    amountNano,
    alongside: { inserts: [generationRow(record)], adds: usageAdds(record) },
  });
}

function refused(
  cause: unknown,
  { deps, call }: { deps: InferenceDependencies; call: InferenceCall },
): GatewayError {
  deps.observer.settlementFailed(cause, call.generationId);
  return new GatewayError(
    "service_unavailable",
    "The charge could not be recorded, so nothing was charged. Try again.",
    {
      retryAfterSeconds: 1,
      cause,
    },
  );
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
const keptText = (text: string | null): string | null =>
  text === null || (text.length <= 200 && !/\p{Cc}/u.test(text))
    ? text
    : text.slice(0, 200).replace(/\p{Cc}/gu, "");

function generationRecord(
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
    upstreamId: keptText(settlement.upstreamId),
    status: settlement.status,
    finishReason: keptText(settlement.finishReason),
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

/**
 * Plans a call as `planCall` does. A request that no route can serve leaves a record, unless its
 * rate windows refuse it.
 */
export function planOrRecord(deps: InferenceDependencies, call: InferenceCall): CallPlan {
  const trail = trailOf(deps, call);
  if (trail.candidates.length > 0) return trail;
  const error = noRoute(trail);
  const record = (): void =>
    writeUnsettled(deps, {
      call: streamedOf(call),
      status: "failed",
      requestedModel: call.requestedAs ?? trail.requestedModel,
      error,
      routing: routingTrail({ candidates: [], heldBack: [], leftOut: trail.leftOut }),
    });
  if (call.admission === undefined) record();
  else call.admission.counted.then(record, () => undefined);
  throw error;
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

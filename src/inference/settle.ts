import { balanceOf } from "../account/ledger/account-book.ts";
import { chargeFor, effectivePrice, type PriceRow, type PriceVector } from "../account/ledger/price.ts";
import type { PostedCharge } from "../account/ledger/ledger.ts";
import { generationRow, type AttemptRecord, type GenerationDetail, type GenerationRecord } from "../insights/generation-record.ts";
import { usageAdds } from "../insights/usage-rollup.ts";
import type { CommitUnit } from "../platform/storage/commit-queue.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import { usdPerMillionText } from "../platform/lib/money.ts";
import type { Loss } from "./canonical/loss.ts";
import { totalInputTokens, totalOutputTokens, type MeteredUsage } from "./canonical/usage.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import { isFree } from "./hold-ceiling.ts";
import type { InferenceCall } from "./inference-call.ts";
import type { RequestTiming } from "./observer.ts";
import type { Candidate } from "./routing/candidate.ts";

/** What an answer, whole or cut, has to be settled with. */
export interface Settlement {
  call: InferenceCall;
  candidate: Candidate;
  /** What the translation to the upstream's dialect dropped or changed. */
  losses: readonly Loss[];
  /** Why the request went where it went; undefined where there was only one way. */
  routing: GenerationDetail["routing"];
  requestedModel: string;
  metered: MeteredUsage;
  finishReason: string | null;
  status: GenerationRecord["status"];
  streamed: boolean;
  upstreamId: string | null;
  attempts: readonly AttemptRecord[];
  timing: Omit<RequestTiming, "settledMs">;
}

/** A settled request: what was charged, durable before this is handed on. */
export interface Settled extends PostedCharge {
  free: boolean;
  /** The caller's own provider key paid. */
  isByok: boolean;
  settledMs: number;
}

/** What a settlement counts of the provider key that served, at list price; nothing where it was the platform's credential. */
function keyPosting({ providerKeys }: InferenceDependencies, { candidate, call, metered }: Settlement) {
  const { credential, route: { price } } = candidate;
  const listedNano = credential === undefined || price === undefined ? 0n : chargeFor(price, metered.usage);
  let counted: ReturnType<typeof providerKeys.settle> | undefined;
  return {
    listedNano,
    /** What counts against limits that include callers' own keys. */
    byokNano: credential?.source === "own_byok" ? listedNano : 0n,
    /** Counts it now; the rows are to be committed with the record. */
    count(): CommitUnit["adds"] {
      if (credential === undefined) return [];
      counted = providerKeys.settle(call.generationId, credential, listedNano);
      return counted.adds;
    },
    /** Takes back what the database refused. */
    undo: (): void => counted?.undo(),
  };
}

/**
 * Prices the usage, charges the hold and writes the record in one commit. Settles when the charge is
 * durable; a free request does not wait, since nothing is charged. Throws `service_unavailable` when the
 * database refused, and then nothing stands.
 */
export async function settle(deps: InferenceDependencies, settlement: Settlement): Promise<Settled> {
  const { candidate, call, metered } = settlement;
  const free = call.unbilled === true || isFree(candidate);
  const price = candidate.route.price;
  const amountNano = free || price === undefined ? 0n : chargeFor(price, metered.usage);
  const key = keyPosting(deps, settlement);
  let record: GenerationRecord | undefined;
  let balanceAfterNano = balanceOf(deps.ledger.book.workspace(call.caller.workspace.id));
  const posting = deps.ledger.post({
    holdId: call.generationId,
    amountNano,
    byokNano: key.byokNano,
    alongside: (posted) => {
      record = generationRecord(deps, { settlement, posted, price });
      balanceAfterNano = posted.balanceAfterNano;
      return { inserts: [generationRow(record)], adds: [...usageAdds(record), ...key.count()] };
    },
  });
  posting.catch(() => key.undo());
  if (amountNano > 0n || key.listedNano > 0n) await awaitPosting(posting, { deps, call });
  else posting.catch((error: unknown) => deps.observer.settlementFailed(error, call.generationId));
  const settledMs = deps.clock.monotonicMs();
  if (record !== undefined) {
    deps.observer.settled(record, { ...settlement.timing, settledMs });
    call.tokensUsed?.(record.promptTokens + record.completionTokens);
  }
  const chargedNano = record?.costNanoUsd ?? 0n;
  return {
    free, settledMs, chargedNano, isByok: candidate.credential?.source === "own_byok",
    uncollectedNano: amountNano - chargedNano,
    heldNano: BigInt(record?.detail.holdNanoUsd ?? 0),
    balanceAfterNano,
  };
}

async function awaitPosting(
  posting: Promise<unknown>,
  { deps, call }: { deps: InferenceDependencies; call: InferenceCall },
): Promise<void> {
  try {
    await posting;
  } catch (error) {
    deps.observer.settlementFailed(error, call.generationId);
    throw new GatewayError("service_unavailable", "The charge could not be recorded, so nothing was charged. Try again.", {
      retryAfterSeconds: 1, cause: error,
    });
  }
}

/** Texts of price vectors, which are the same objects for as long as a catalog lives. */
const priceTexts = new WeakMap<PriceVector, Record<string, string>>();

function priceText(row: PriceRow | undefined, inputTokens: number): Record<string, string> | null {
  if (row === undefined) return null;
  const vector = effectivePrice(row, inputTokens);
  let text = priceTexts.get(vector);
  if (text === undefined) {
    text = Object.fromEntries(Object.entries(vector).map(([part, price]) => [part, usdPerMillionText(price as bigint)]));
    priceTexts.set(vector, text);
  }
  return text;
}

/** A provider's word as it is kept: short, and without characters that a database refuses (U+0000 on Postgres). */
const keptText = (text: string | null): string | null =>
  (text === null || (text.length <= 200 && !/\p{Cc}/u.test(text)) ? text : text.slice(0, 200).replace(/\p{Cc}/gu, ""));

/** Whose key served; of donated ones nothing else is told. */
function credentialDetail({ candidate: { credential } }: Settlement): Pick<GenerationDetail, "credentialSource" | "providerKeyId"> {
  if (credential === undefined) return {};
  return { credentialSource: credential.source, ...(credential.source === "own_byok" && { providerKeyId: credential.key.id }) };
}

function generationRecord(
  deps: InferenceDependencies,
  { settlement, posted, price }: { settlement: Settlement; posted: PostedCharge; price: PriceRow | undefined },
): GenerationRecord {
  const { call, candidate, metered, timing } = settlement;
  const nowMs = deps.clock.monotonicMs();
  const promptTokens = totalInputTokens(metered.usage);
  return {
    id: call.generationId,
    createdAtMs: Math.round(deps.clock.nowMs() - (nowMs - timing.startedMs)),
    workspaceId: call.caller.workspace.id,
    keyId: call.caller.key.id,
    surface: call.recordedAs,
    requestedModel: settlement.requestedModel,
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
    firstTokenMs: timing.firstContentMs === null ? null : Math.round(timing.firstContentMs - timing.startedMs),
    detail: {
      usage: { ...metered.usage },
      ...(metered.estimated ? { usageEstimated: true as const } : {}),
      ...(metered.clamped ? { usageClamped: true as const } : {}),
      ...(metered.providerCostUsd === undefined ? {} : { upstreamCostUsd: metered.providerCostUsd }),
      priceVersion: price?.version ?? null,
      price: priceText(price, promptTokens),
      holdNanoUsd: String(posted.heldNano),
      ...credentialDetail(settlement),
      ...(posted.uncollectedNano > 0n ? { uncollectedNanoUsd: String(posted.uncollectedNano) } : {}),
      ...(settlement.routing === undefined ? {} : { routing: settlement.routing }),
      ...(settlement.losses.length === 0 ? {} : { translationLosses: settlement.losses.map(({ field, reason }) => ({ field, reason })) }),
      ...(call.origin === undefined ? {} : { origin: call.origin }),
      ...(call.appTitle === undefined ? {} : { appTitle: call.appTitle }),
      ...(call.sessionId === undefined ? {} : { sessionId: call.sessionId }),
      ...(call.traceParent === undefined ? {} : { traceParent: call.traceParent }),
      ...(call.body["trace"] === undefined ? {} : { trace: call.body["trace"] }),
    },
  };
}

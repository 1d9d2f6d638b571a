import type { ProviderKeys } from "../../../byok/provider-keys.ts";
import { noteShare } from "../../../billing/customers/customer-book.ts";
import { chargedPrice, chargedUsage } from "../../../billing/ledger/price-levels.ts";
import { balanceOf } from "../../../billing/ledger/book/account-book.ts";
import { chargeFor } from "../../../billing/ledger/price.ts";
import type { PostedCharge, Posting } from "../../../billing/ledger/ledger-port.ts";
import { generationRow, type GenerationRecord } from "../../../insights/generation-record.ts";
import { customerAdds, senderAdds, usageAdds } from "../../../insights/usage/usage-rollup.ts";
import type { CommitUnit } from "../../../platform/storage/commit-queue.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { extrasOf } from "../../dialects/shared/extras/charged-extras.ts";
import type { WholeAnswer } from "../../dialects/shared/exchange.ts";
import type { InferenceDependencies } from "../execution.ts";
import type { ServedWhole, Settled } from "../served-answer.ts";
import { isFree } from "../hold/hold-ceiling.ts";
import type { InferenceCall } from "../inference-call.ts";
import { sendersOf, shareOf, tagsOf } from "../hold/take-hold.ts";
import type { Settlement, Priced } from "./settlement.ts";
import { generationRecord } from "./records.ts";

/**
 * Returns what the provider key that served has paid, at list price; 0 where the platform's
 * credential served.
 */
const listedNanoOf = (
  { candidate: { credential } }: Settlement,
  { price, usage }: Priced,
): bigint => (credential === undefined || price === undefined ? 0n : chargeFor(price, usage));

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

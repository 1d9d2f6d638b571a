import { limitWindowHours, type LimitReset } from "../../identity/keys/llm-key-store.ts";
import { countedWithin } from "../../billing/ledger/book/account-book.ts";
import { periodFrom } from "../../billing/budgets/budget.ts";
import { spanOf } from "../../billing/budgets/budget-windows.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { hourMs } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";

/** A key's spending against its own limit. */
export interface SpendCap {
  period: NonNullable<LimitReset>;
  limitNano: bigint;
  spentNano: bigint;
  /**
   * The time when all present spending has left the rolling window; the same for every answer of an
   * hour.
   */
  resetsAtMs: number;
}

type Caller = Pick<LlmKeyCaller, "key">;

/** Returns a caller's spending against its key's limit; undefined where the key has none. */
export function spendCapOf(
  { key }: Caller,
  { ledger, clock }: Pick<Dependencies, "ledger" | "clock">,
): SpendCap | undefined {
  if (key.limitNanoUsd === null) return undefined;
  const nowMs = clock.nowMs();
  const windowHours = limitWindowHours(key.limitReset);
  const spentNano = countedWithin(ledger.book.key(key.id), {
    windowHours,
    countsByok: key.includeByokInLimit,
    nowMs,
  });
  return {
    period: key.limitReset ?? "monthly",
    limitNano: key.limitNanoUsd,
    spentNano,
    resetsAtMs: (Math.floor(nowMs / hourMs) + windowHours + 1) * hourMs,
  };
}

/** Returns the percentage of a cap that is used, which may exceed 100. */
export const usedPercent = ({ spentNano, limitNano }: SpendCap): number =>
  limitNano === 0n ? 100 : Number((spentNano * 100n) / limitNano);

const name = (rest: string): string => `anthropic-ratelimit-unified-${rest}`;
const warnedPercents = [95, 75] as const;

/**
 * Returns the headers that tell Claude Code how much of its key's limit is used; it warns beyond 75
 * and 95 percent.
 */
export function capHeaders(cap: SpendCap): Record<string, string> {
  const percent = Math.min(99, usedPercent(cap));
  const surpassed = warnedPercents.find((each) => percent >= each);
  const status = surpassed === undefined ? "allowed" : "allowed_warning";
  const reset = String(cap.resetsAtMs / 1000);
  return {
    [name("status")]: status,
    [name("representative-claim")]: "overage",
    [name("overage-status")]: status,
    [name("overage-utilization")]: (percent / 100).toFixed(2),
    [name("reset")]: reset,
    [name("overage-reset")]: reset,
    ...(surpassed === undefined
      ? {}
      : { [name("overage-surpassed-threshold")]: (surpassed / 100).toFixed(2) }),
  };
}

/**
 * The header that Claude Code sends with every request. When signed in to the gateway, it reads
 * limits from headers that no other client knows.
 */
export const agentSessionHeader = "x-claude-code-session-id";

const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/**
 * Returns the refusal in the form that Claude Code shows verbatim: a 429 that names the reset, and
 * headers without a claim.
 */
function capReached(
  refusal: GatewayError,
  { period, resetsAtMs, nowMs }: { period: string; resetsAtMs: number; nowMs: number },
): GatewayError {
  const reset = String(resetsAtMs / 1000);
  return new GatewayError(
    "spend_limit_reached",
    `Spend limit reached, free again by ${day(resetsAtMs)} (UTC). ${refusal.message}`,
    {
      cause: refusal,
      metadata: refusal.metadata,
      retryAfterSeconds: Math.max(1, Math.ceil((resetsAtMs - nowMs) / 1000)),
      headers: {
        [name("status")]: "rejected",
        [name("reset")]: reset,
        [name("overage-reset")]: reset,
        [name("overage-utilization")]: "1",
        [name("overage-surpassed-threshold")]: "1",
        [name("overage-period")]: period,
        [name("overage-disabled-reason")]: "org_spend_cap_reached",
      },
    },
  );
}

/**
 * Returns the refusal of a request that a limit or a budget caused, in Claude Code's form; all
 * other errors unchanged.
 */
function worded(
  thrown: unknown,
  caller: Caller,
  deps: Pick<Dependencies, "ledger" | "clock">,
): unknown {
  if (!(thrown instanceof GatewayError) || thrown.code !== "insufficient_balance") return thrown;
  const nowMs = deps.clock.nowMs();
  const { reason, budget_period: period, budget_reset_day: resetDay = 1 } = thrown.metadata;
  const { budget_time_zone: zone } = thrown.metadata;
  // A budget of all time is never free again.
  if (reason === "budget_reached" && period !== "total") {
    const from = periodFrom(period as "daily" | "weekly" | "monthly", Number(resetDay));
    const timeZone = zone === undefined ? null : String(zone);
    const resetsAtMs = spanOf({ period: from, timeZone }, nowMs).endMs;
    return capReached(thrown, { period: String(period), resetsAtMs, nowMs });
  }
  const cap = reason === "key_limit_reached" ? spendCapOf(caller, deps) : undefined;
  return cap === undefined ? thrown : capReached(thrown, { ...cap, nowMs });
}

/**
 * Runs a request. Claude Code receives its caps in its own form; other clients are not affected.
 */
export async function tellingCaps<Result>(
  {
    caller,
    isAgent,
    answerHeaders,
    deps,
  }: {
    caller: Caller;
    isAgent: boolean;
    answerHeaders: Record<string, string>;
    deps: Pick<Dependencies, "ledger" | "clock">;
  },
  work: () => Promise<Result>,
): Promise<Result> {
  if (!isAgent || caller.key.connection === undefined) return work();
  const cap = spendCapOf(caller, deps);
  try {
    if (cap !== undefined) Object.assign(answerHeaders, capHeaders(cap));
    return await work();
  } catch (thrown) {
    for (const header of Object.keys(cap === undefined ? {} : capHeaders(cap)))
      delete answerHeaders[header];
    throw worded(thrown, caller, deps);
  }
}

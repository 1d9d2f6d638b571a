import type { Clock } from "../../../platform/kernel/clock.ts";
import { SharedStateAwayError } from "../../../platform/shared-state/shared-state-error.ts";
import { ledgerScript } from "./ledger-script.ts";
import type { LedgerPart, SharedAccounts } from "./shared-accounts.ts";

/** How long a gateway counts as alive without a beat; what it holds is freed after that. */
export const nodeLeaseMs = 6_000;
const beatMs = 1_500;

/**
 * Keeps a gateway alive for the others. Values: for how long. Answers `lapsed` where it was not
 * alive any more: the server or this gateway stood still, so the others may come back to life as
 * well, and nothing is taken from any gateway for as long as a lease lasts.
 */
const beatScript = ledgerScript(
  "Beat",
  `
local before, life = tonumber(redis.call('ZSCORE', N, node) or nil), tonumber(ARGV[6])
redis.call('ZADD', N, now + life, node)
redis.call('ZREMRANGEBYSCORE', N, '-inf', now - hour_ms)
if before and before >= now then return {'alive'} end
if before then redis.call('SET', G, text(now + life), 'PX', life) end
return {'lapsed'}`,
);

/** A gateway ends: what it still holds is free at once. */
const leaveScript = ledgerScript(
  "Leave",
  `
redis.call('ZADD', N, now - 1, node)
return {}`,
);

/** This gateway's life, as the others that share the ledger see it, in each part of it. */
export class NodeLease {
  private readonly accounts: Pick<SharedAccounts, "parts" | "runIn">;
  private readonly clock: Clock;
  private readonly onLapse: (part: LedgerPart) => unknown;
  private readonly onError: (error: unknown) => void;
  private timer: ReturnType<typeof setInterval> | undefined;
  private forgetRuns: (() => void)[] = [];
  /** When the last beat was sent that a part answered, on the monotonic clock. */
  private readonly aliveAtMs = new Map<LedgerPart, number>();

  /** `onLapse` makes known again what this gateway holds in a part. */
  constructor({
    accounts,
    clock,
    onLapse,
    onError,
  }: {
    accounts: Pick<SharedAccounts, "parts" | "runIn">;
    clock: Clock;
    onLapse(part: LedgerPart): unknown;
    onError(error: unknown): void;
  }) {
    this.accounts = accounts;
    this.clock = clock;
    this.onLapse = onLapse;
    this.onError = onError;
  }

  /** Beats from now on, and at once in a run of a server that begins. */
  start(): void {
    this.forgetRuns = this.accounts.parts.map((part) => part.onRun(() => void this.beatIn(part)));
    this.timer = setInterval(() => void this.beat(), beatMs);
  }

  /** Beats no more, and says so where it leaves; else its lease has to end. */
  stop({ leaves }: { leaves: boolean }): void {
    clearInterval(this.timer);
    for (const forget of this.forgetRuns.splice(0)) forget();
    if (leaves && this.timer !== undefined) {
      for (const part of this.accounts.parts)
        this.accounts.runIn(part, leaveScript, []).catch((error: unknown) => this.tell(error));
    }
    this.timer = undefined;
  }

  /**
   * Whether at least half of the lease in a part is left: a commit that begins now ends within it.
   */
  isSureIn(part: LedgerPart): boolean {
    const aliveAtMs = this.aliveAtMs.get(part) ?? -Infinity;
    return this.clock.monotonicMs() - aliveAtMs < nodeLeaseMs / 2;
  }

  /** Beats once, in every part. */
  async beat(): Promise<void> {
    await Promise.all(this.accounts.parts.map((part) => this.beatIn(part)));
  }

  private async beatIn(part: LedgerPart): Promise<void> {
    const sentMs = this.clock.monotonicMs();
    try {
      const [answer] = await this.accounts.runIn(part, beatScript, [nodeLeaseMs]);
      this.aliveAtMs.set(part, sentMs);
      if (answer === "lapsed") this.onLapse(part);
    } catch (error) {
      this.tell(error);
    }
  }

  private tell(error: unknown): void {
    if (!(error instanceof SharedStateAwayError)) this.onError(error);
  }
}

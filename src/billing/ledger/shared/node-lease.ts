import type { Clock } from "../../../platform/kernel/clock.ts";
import { SharedStateAwayError } from "../../../platform/shared-state/shared-state-error.ts";
import { ledgerScript } from "./ledger-script.ts";
import type { LedgerPart, SharedAccounts } from "./shared-accounts.ts";

/** How long a gateway counts as alive without a beat, in milliseconds. Then its holds are freed. */
export const nodeLeaseMs = 6_000;
const beatMs = 1_500;

/**
 * Renews a gateway's lease. Values: the duration in milliseconds. Answers `lapsed` where the lease
 * had expired, because the server or this gateway was suspended. Other gateways may then also be
 * about to return, so nothing is taken from any gateway for the duration of a lease.
 */
const beatScript = ledgerScript(
  "Beat",
  `
local before, life = tonumber(redis.call('ZSCORE', N, node) or nil), tonumber(ARGV[6])
redis.call('ZADD', N, now + life, node)
redis.call('ZREMRANGEBYSCORE', N, '-inf', now - hour_ms)
keep(N, root .. 'begun')
if before and before >= now then return {'alive'} end
if before then redis.call('SET', G, text(now + life), 'PX', life) end
return {'lapsed'}`,
);

/** Ends a gateway's lease, so that its remaining holds are freed at once. */
const leaveScript = ledgerScript(
  "Leave",
  `
redis.call('ZADD', N, now - 1, node)
keep(N)
return {}`,
);

/** The lease by which the other gateways on the ledger see this one as alive, in each part. */
export class NodeLease {
  private readonly accounts: Pick<SharedAccounts, "parts" | "runIn">;
  private readonly clock: Clock;
  private readonly onLapse: (part: LedgerPart) => unknown;
  private readonly onError: (error: unknown) => void;
  private timer: ReturnType<typeof setInterval> | undefined;
  private forgetRuns: (() => void)[] = [];
  /**
   * The times at which the most recent answered beats were sent, by part, on the monotonic clock.
   */
  private readonly aliveAtMs = new Map<LedgerPart, number>();

  /**
   * Creates a lease that does not beat yet; `onLapse` restores what this gateway holds in a part.
   */
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

  /** Starts beating, at intervals and whenever a server starts a new run. */
  start(): void {
    this.forgetRuns = this.accounts.parts.map((part) => part.onRun(() => void this.beatIn(part)));
    this.timer = setInterval(() => void this.beat(), beatMs);
  }

  /**
   * Stops beating. Ends the lease at once where the gateway leaves for good; else it has to expire.
   */
  stop({ leaves }: { leaves: boolean }): void {
    clearInterval(this.timer);
    for (const forget of this.forgetRuns.splice(0)) forget();
    if (leaves && this.timer !== undefined) {
      for (const part of this.accounts.parts)
        this.accounts.runIn(part, leaveScript, []).catch((error: unknown) => this.report(error));
    }
    this.timer = undefined;
  }

  /**
   * Returns whether at least half of the lease in a part is left, in which a commit that starts now
   * ends.
   */
  isSureIn(part: LedgerPart): boolean {
    const aliveAtMs = this.aliveAtMs.get(part) ?? -Infinity;
    return this.clock.monotonicMs() - aliveAtMs < nodeLeaseMs / 2;
  }

  /** Beats once in every part. */
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
      this.report(error);
    }
  }

  private report(error: unknown): void {
    if (!(error instanceof SharedStateAwayError)) this.onError(error);
  }
}

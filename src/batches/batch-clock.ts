import type { Kysely } from "kysely";
import type { Clock } from "../platform/kernel/clock.ts";
import type { BatchTables } from "./batch.ts";
import type { LeaseTime } from "./lease-time.ts";

/** Milliseconds for which a reading is used. */
const readEveryMs = 10_000;

/**
 * The clock by which batches begin, pause and expire: that of the leases, so that gateways whose own
 * clocks differ agree. It is read from the database, and goes on by the own one.
 */
export class BatchClock implements Clock {
  private aheadMs = 0;
  private readAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly own: Clock,
    private readonly database: Kysely<BatchTables>,
    private readonly leaseTime: LeaseTime,
  ) {}

  /** Reads the time of the leases where the last reading is old. */
  async read(): Promise<void> {
    const askedMs = this.own.monotonicMs();
    if (askedMs - this.readAtMs < readEveryMs) return;
    const { now } = await this.database
      .selectNoFrom(this.leaseTime().$castTo<number | string>().as("now"))
      .executeTakeFirstOrThrow();
    this.aheadMs = Number(now) - this.own.nowMs();
    this.readAtMs = askedMs;
  }

  nowMs(): number {
    return Math.round(this.own.nowMs() + this.aheadMs);
  }

  monotonicMs(): number {
    return this.own.monotonicMs();
  }

  livedMs(): number {
    return this.own.livedMs();
  }
}

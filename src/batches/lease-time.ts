import { type RawBuilder, sql } from "kysely";
import type { Clock } from "../platform/kernel/clock.ts";

/** Returns the time by which leases are taken and compared, in milliseconds, as part of a statement. */
export type LeaseTime = () => RawBuilder<number>;

/**
 * Returns the time of leases: the database's where several gateways share it, since one whose clock
 * is ahead would take the work of the others, and have each line run twice.
 */
export const leaseTimeOf = (
  clock: Pick<Clock, "nowMs">,
  { isShared }: { isShared: boolean },
): LeaseTime =>
  isShared
    ? () => sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
    : () => sql<number>`${clock.nowMs()}`;

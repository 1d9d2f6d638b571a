import { sql } from "kysely";
import { type Clock, systemClock } from "../../kernel/clock.ts";
import type { Migration } from "../storage.ts";

/**
 * Keeps generation records in a partition for each month, on Postgres. Gateways of the previous
 * release continue to use the table by its name.
 */
export const monthsBy = (clock: Pick<Clock, "nowMs">): Migration => ({
  name: "2026-11-25-months additive to 2026-11-23-first-schema",
  async up(database, kind) {
    if (kind === "sqlite") return;
    const { monthlyGenerations, partitionByMonth } = await import(
      "../postgres/month-partitions.ts"
    );
    // Locked in the same order as by commits, so that they cannot deadlock; the next migration
    // needs transfers.
    await sql`lock table transfers in share row exclusive mode`.execute(database);
    await partitionByMonth(database, monthlyGenerations, {
      nowMs: clock.nowMs(),
      primaryKey: "workspace_id, id",
      indexes: {
        generations_unfinished: "(workspace_id, id, status) where status <> 'completed'",
      },
    });
  },
});

/** The migration with months by the system's clock. */
export const months = monthsBy(systemClock);

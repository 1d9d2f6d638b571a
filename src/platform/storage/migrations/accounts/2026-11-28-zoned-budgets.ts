import { sql } from "kysely";
import type { Migration } from "../../storage.ts";

/** Keeps the time zone of each budget; null is UTC. */
export const zonedBudgets: Migration = {
  name: "2026-11-28-zoned-budgets additive to 2026-11-23-first-schema",
  async up(database) {
    await sql.raw("alter table budgets add column time_zone text").execute(database);
  },
};

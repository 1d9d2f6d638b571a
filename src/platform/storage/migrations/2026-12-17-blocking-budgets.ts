import { sql } from "kysely";
import type { Migration } from "../migrate.ts";

/** What a budget does when it is spent: those that exist only alert. */
export const blockingBudgets: Migration = {
  name: "2026-12-17-blocking-budgets",
  async up(database) {
    await sql`alter table budgets add column action text not null default 'alert'`.execute(
      database,
    );
  },
};

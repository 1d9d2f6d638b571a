import { sql } from "kysely";
import type { Migration } from "../migrate.ts";

/** What a statement reads: movements that are no charges, and the charges of a workspace by the hour. */
export const statements: Migration = {
  name: "2026-12-21-statements",
  async up(database) {
    // Charges are left out, so that no request pays for these.
    for (const side of ["debit", "credit"]) {
      await sql`create index ${sql.ref(`transfers_by_${side}`)} on transfers (${sql.ref(`${side}_account`)}, created_at_ms, id)
        where kind <> 'charge' and kind <> 'uncollected'`.execute(database);
    }
    await sql`create index key_spend_hours_by_workspace on key_spend_hours (workspace_id, hour)`.execute(
      database,
    );
  },
};

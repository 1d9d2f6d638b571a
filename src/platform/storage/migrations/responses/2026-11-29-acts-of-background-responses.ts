import { sql } from "kysely";
import type { Migration } from "../../storage.ts";

/**
 * Whether a background response may have called a tool that does more than read: 0 and 1, null where
 * a release before this one has run it.
 */
export const actsOfBackgroundResponses: Migration = {
  name: "2026-11-29-acts-of-background-responses additive to 2026-11-23-first-schema",
  async up(database) {
    await sql.raw("alter table stored_responses add column acted integer").execute(database);
  },
};

import { sql } from "kysely";
import type { Migration } from "../../storage.ts";

/**
 * Stores the preset of a stored response, for the generation record of the job that runs it later.
 */
export const presetOfBackgroundResponses: Migration = {
  name: "2026-11-25-preset-of-background-responses additive to 2026-11-23-first-schema",
  async up(database) {
    await sql.raw("alter table stored_responses add column preset_id text").execute(database);
  },
};

import { sql } from "kysely";
import type { Migration } from "../migrate.ts";

/** How often a background response was begun: only its first run is charged under the response's own id. */
export const backgroundRuns: Migration = {
  name: "2026-12-13-background-runs",
  async up(database) {
    await sql`alter table stored_responses add column runs integer not null default 0`.execute(
      database,
    );
  },
};

import { sql } from "kysely";
import type { Migration } from "../../storage.ts";

/** Keys that may call providers' own routes; no key could before. */
export const passthroughKeys: Migration = {
  name: "2026-11-28-passthrough-keys additive to 2026-11-23-first-schema",
  up: async (database) => {
    await sql`alter table llm_keys add column passthrough integer not null default 0`.execute(
      database,
    );
  },
};

import { sql } from "kysely";
import type { Migration } from "../../storage.ts";

/** Organisations that only people with a second factor may enter; none required it before. */
export const requiredSecondFactors: Migration = {
  name: "2026-11-28-required-second-factors additive to 2026-11-23-first-schema",
  up: async (database) => {
    await sql`alter table organizations add column second_factor_required integer not null default 0`.execute(
      database,
    );
  },
};

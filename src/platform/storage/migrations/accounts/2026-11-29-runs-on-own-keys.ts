import { sql } from "kysely";
import type { Migration } from "../../storage.ts";

/** What a released run used through own provider keys, which counts in its owner from then on. */
export const runsOnOwnKeys: Migration = {
  name: "2026-11-29-runs-on-own-keys additive to 2026-11-23-first-schema",
  async up(database, kind) {
    const type = kind === "sqlite" ? "integer" : "bigint";
    await sql
      .raw(`alter table runs add column settled_byok_nano ${type} not null default 0`)
      .execute(database);
  },
};

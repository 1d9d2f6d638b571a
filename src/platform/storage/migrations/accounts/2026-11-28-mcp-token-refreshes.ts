import { sql } from "kysely";
import type { Migration } from "../../storage.ts";

/** Until when one gateway alone refreshes the tokens of a person. */
export const mcpTokenRefreshes: Migration = {
  name: "2026-11-28-mcp-token-refreshes additive to 2026-11-23-first-schema",
  async up(database, kind) {
    const type = kind === "sqlite" ? "integer" : "bigint";
    await sql
      .raw(`alter table mcp_grants add column refreshing_until_ms ${type} not null default 0`)
      .execute(database);
  },
};

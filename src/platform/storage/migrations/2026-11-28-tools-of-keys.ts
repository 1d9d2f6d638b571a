import { sql } from "kysely";
import type { Migration } from "../migrate.ts";

/** Stores the tools of MCP servers that an LLM key may use; null allows all. */
export const toolsOfKeys: Migration = {
  name: "2026-11-28-tools-of-keys additive to 2026-11-23-first-schema",
  async up(database) {
    await sql.raw("alter table llm_keys add column allowed_tools text").execute(database);
  },
};

import { sql } from "kysely";
import { createTable } from "../../create-table.ts";
import type { Migration } from "../../storage.ts";

/**
 * Stores the MCP servers that workspaces registered, the tools that servers list, pinned, the tokens
 * with which people use them, consents that are under way, and the tools that a key may use.
 */
export const mcpServers: Migration = {
  name: "2026-11-28-mcp-servers additive to 2026-11-23-first-schema",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "mcp_servers",
      columns: {
        workspace_id: "text not null references workspaces (id)",
        id: "text not null",
        name: "text not null",
        url: "text not null",
        auth: "text not null",
        sealed: "text",
        allowed_tools: "text",
        price_nano: "integer not null",
        timeout_ms: "integer not null",
        result_bytes_max: "integer not null",
        created_at_ms: "integer not null",
        updated_at_ms: "integer",
      },
      constraints: ["primary key (workspace_id, id)"],
    });
    await createTable(database, kind, {
      name: "mcp_tool_lists",
      columns: {
        server_key: "text primary key",
        revision: "text not null",
        tools: "text not null",
        error: "text",
        checked_at_ms: "integer not null",
      },
    });
    await createTable(database, kind, {
      name: "mcp_grants",
      columns: {
        server_key: "text not null",
        workspace_id: "text not null references workspaces (id)",
        person_id: "text not null",
        sealed: "text not null",
        updated_at_ms: "integer not null",
      },
      constraints: ["primary key (server_key, workspace_id, person_id)"],
    });
    await createTable(database, kind, {
      name: "mcp_consents",
      columns: {
        state: "text primary key",
        server_id: "text not null",
        workspace_id: "text not null references workspaces (id)",
        user_id: "text not null",
        sealed: "text not null",
        expires_at_ms: "integer not null",
      },
    });
    await sql.raw("alter table llm_keys add column allowed_tools text").execute(database);
  },
};

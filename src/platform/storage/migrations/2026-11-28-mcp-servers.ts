import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/** Stores the MCP servers that workspaces registered, and the tools that servers list, pinned. */
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
  },
};

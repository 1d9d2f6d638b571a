import { createTable } from "../../create-table.ts";
import type { Migration } from "../../storage.ts";

/** Stores the names of models that workspaces made for themselves. */
export const workspaceAliases: Migration = {
  name: "2026-11-28-workspace-aliases additive to 2026-11-23-first-schema",
  up: (database, kind) =>
    createTable(database, kind, {
      name: "workspace_aliases",
      columns: {
        workspace_id: "text not null references workspaces (id)",
        name: "text not null",
        target: "text not null",
        description: "text",
        created_at_ms: "integer not null",
        updated_at_ms: "integer not null",
      },
      constraints: ["primary key (workspace_id, name)"],
    }),
};

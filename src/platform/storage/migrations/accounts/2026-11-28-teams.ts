import { sql } from "kysely";
import { createTable } from "../../create-table.ts";
import type { Migration } from "../../storage.ts";

const indexes = [
  "create unique index teams_by_name on teams (workspace_id, name) where removed_at_ms is null",
  "create index team_members_by_user on team_members (user_id)",
  "alter table llm_keys add column team_id text",
  "create index llm_keys_by_team on llm_keys (team_id) where team_id is not null",
] as const;

/** Stores teams of workspaces with their members, and the team of each key. */
export const teams: Migration = {
  name: "2026-11-28-teams additive to 2026-11-23-first-schema",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "teams",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        name: "text not null",
        // JSON; null allows every model.
        allowed_models: "text",
        budget_id: "text",
        created_at_ms: "integer not null",
        updated_at_ms: "integer",
        removed_at_ms: "integer",
      },
    });
    await createTable(database, kind, {
      name: "team_members",
      columns: {
        team_id: "text not null",
        user_id: "text not null",
        joined_at_ms: "integer not null",
      },
      constraints: ["primary key (team_id, user_id)"],
    });
    for (const statement of indexes) await sql.raw(statement).execute(database);
  },
};

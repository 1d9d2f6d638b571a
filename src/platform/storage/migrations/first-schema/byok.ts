import type { SchemaPart } from "./schema-part.ts";

/** Callers' own provider keys, sealed, and their usage at list price. */
export const byokSchema: SchemaPart = {
  tables: [
    {
      name: "workspace_data_keys",
      columns: {
        id: "text primary key",
        workspace_id: "text not null unique references workspaces (id)",
        wrapped: "text not null",
        created_at_ms: "integer not null",
      },
    },
    {
      name: "provider_keys",
      columns: {
        id: "text primary key",
        workspace_id: "text not null references workspaces (id)",
        provider_id: "text not null",
        label: "text not null",
        preview: "text not null",
        sealed: "text not null",
        enabled: "integer not null",
        source: "text not null",
        quota_limit_nano: "integer",
        quota_reset: "text",
        donated_at_ms: "integer",
        daily_limit_nano: "integer",
        pause_reason: "text",
        created_at_ms: "integer not null",
        updated_at_ms: "integer",
      },
    },
    {
      name: "provider_key_hours",
      clustered: true,
      columns: {
        key_id: "text not null",
        hour: "integer not null",
        spend_nano: "integer not null",
        requests: "integer not null",
        pool_nano: "integer not null",
        pool_requests: "integer not null",
      },
      constraints: ["primary key (key_id, hour)"],
    },
    // Separate from `key_spend_hours`, whose sums are charges.
    {
      name: "key_byok_hours",
      clustered: true,
      columns: {
        key_id: "text not null",
        hour: "integer not null",
        spend_nano: "integer not null",
      },
      constraints: ["primary key (key_id, hour)"],
    },
  ],
  indexes: ["create index provider_keys_by_workspace on provider_keys (workspace_id)"],
};

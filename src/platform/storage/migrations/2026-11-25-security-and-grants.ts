import { sql, type Kysely } from "kysely";
import { createTable, type TableDefinition } from "../create-table.ts";
import type { Migration } from "../migrate.ts";
import type { StorageKind } from "../storage-kind.ts";

const tables: readonly TableDefinition[] = [
  {
    name: "ip_allowlist",
    columns: {
      id: "text primary key",
      workspace_id: "text not null references workspaces (id)",
      cidr: "text not null",
      description: "text",
      created_at_ms: "integer not null",
    },
    constraints: ["unique (workspace_id, cidr)"],
  },
  {
    // The owner is a workspace or one of its keys.
    name: "privacy_settings",
    columns: {
      owner_id: "text primary key",
      workspace_id: "text not null references workspaces (id)",
      zdr: "integer not null",
      blocked_providers: "text not null",
      updated_at_ms: "integer not null",
    },
  },
  {
    name: "audit_log",
    clustered: true,
    columns: {
      id: "text not null",
      workspace_id: "text not null",
      at_ms: "integer not null",
      actor_kind: "text not null",
      actor_id: "text not null",
      actor_label: "text not null",
      address: "text not null",
      action: "text not null",
      target: "text",
      fields: "text not null",
    },
    constraints: ["primary key (workspace_id, id)"],
  },
  {
    name: "audit_outcomes",
    clustered: true,
    columns: {
      audit_id: "text not null",
      workspace_id: "text not null",
      at_ms: "integer not null",
      status: "integer not null",
      target: "text",
    },
    constraints: ["primary key (workspace_id, audit_id)"],
  },
  {
    name: "credit_grants",
    clustered: true,
    columns: {
      transfer_id: "text not null primary key",
      workspace_id: "text not null",
      granted_at_ms: "integer not null",
      bucket: "text not null",
      kind: "text not null",
      amount_nano: "integer not null check (amount_nano > 0)",
      description: "text",
      granted_by: "text not null",
    },
  },
];

/** The IP allowlist, privacy settings, the audit log, and what was granted to whom. */
export const securityAndGrants: Migration = {
  name: "2026-11-25-security-and-grants",
  async up(database, kind) {
    for (const table of tables) await createTable(database, kind, table);
    await sql`create index credit_grants_by_workspace on credit_grants (workspace_id, granted_at_ms)`.execute(
      database,
    );
    for (const table of ["audit_log", "audit_outcomes"])
      await makeAppendOnly(database, { kind, table });
  },
};

/** The database itself refuses to change or take away what was written. */
async function makeAppendOnly(
  database: Kysely<unknown>,
  { kind, table }: { kind: StorageKind; table: string },
): Promise<void> {
  const run = (statement: string) => sql.raw(statement).execute(database);
  if (kind === "sqlite") {
    for (const change of ["update", "delete"]) {
      await run(`create trigger ${table}_refuses_${change} before ${change} on ${table} begin
        select raise(abort, '${table} is append-only'); end`);
    }
    return;
  }
  await run(`create function ${table}_is_append_only() returns trigger language plpgsql as
    $$ begin raise exception '${table} is append-only'; end $$`);
  await run(`create trigger ${table}_refuses_change before update or delete or truncate on ${table}
    for each statement execute function ${table}_is_append_only()`);
}

import { type Kysely, sql } from "kysely";
import type { StorageKind } from "../../storage.ts";
import type { SchemaPart } from "./schema-part.ts";

/** The IP allowlist, privacy settings, the audit log and idempotent requests. */
export const accessSchema: SchemaPart = {
  tables: [
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
    // The owner is a workspace or one of its keys.
    {
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
    // Keyed hashes of the audit log's rows, each covering the previous one: one chain for each
    // gateway that wrote.
    {
      name: "audit_chain",
      clustered: true,
      columns: {
        chain: "text not null",
        seq: "integer not null",
        part: "text not null",
        workspace_id: "text not null",
        audit_id: "text not null",
        anchors: "text",
        hash: "text not null",
      },
      constraints: ["primary key (chain, seq)"],
    },
    // Requests with an idempotency key, and their sealed answers. Keys and requests are kept as
    // keyed hashes.
    {
      name: "idempotent_requests",
      columns: {
        workspace_id: "text not null",
        actor_id: "text not null",
        key_hash: "text not null",
        fingerprint: "text not null",
        started_at_ms: "integer not null",
        state: "text not null",
        answer: "text",
      },
      constraints: ["primary key (workspace_id, actor_id, key_hash)"],
    },
  ],
  indexes: ["create index idempotent_requests_by_age on idempotent_requests (started_at_ms)"],
  async createRest(database, kind) {
    for (const table of ["audit_log", "audit_outcomes"])
      await makeAppendOnly(database, { kind, table });
  },
};

/** Makes the database itself refuse to change or delete rows of a table. */
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

import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

const text = "text not null";
const moment = "integer not null";

/**
 * Apps that people connect: their clients, codes that are under way, and what was granted. Codes and tokens are kept as keyed
 * hashes. Lists are JSON, times are milliseconds.
 */
export const connections: Migration = {
  name: "2026-12-08-connections",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "oauth_clients",
      columns: {
        id: "text primary key",
        name: text,
        redirect_uris: text,
        client_uri: "text",
        logo_uri: "text",
        application_type: text,
        scope: "text",
        secret_hash: "text",
        registered_address: text,
        created_at_ms: moment,
        last_used_at_ms: "integer",
      },
    });
    await createTable(database, kind, {
      name: "authorization_codes",
      columns: {
        code_hash: "text primary key",
        purpose: text,
        client_id: "text",
        client_name: text,
        callback_url: text,
        code_challenge: text,
        code_challenge_method: text,
        user_id: text,
        workspace_id: text,
        parent_key_id: "text",
        terms: text,
        resource: "text",
        created_at_ms: moment,
        expires_at_ms: moment,
        used_at_ms: "integer",
        made_key_id: "text",
      },
    });
    await createTable(database, kind, {
      name: "device_codes",
      columns: {
        device_code_hash: "text primary key",
        user_code_hash: "text not null unique",
        client_id: "text",
        client_name: text,
        scopes: text,
        offline: moment,
        key_label: "text",
        address: text,
        user_agent: text,
        created_at_ms: moment,
        expires_at_ms: moment,
        interval_s: moment,
        last_polled_at_ms: "integer",
        status: text,
        decided_by_user_id: "text",
        workspace_id: "text",
        terms: "text",
      },
    });
    await createTable(database, kind, {
      name: "connections",
      columns: {
        id: "text primary key",
        key_id: text,
        workspace_id: text,
        user_id: text,
        client_id: "text",
        client_name: text,
        origin: text,
        scopes: text,
        bundle: "text",
        resource: "text",
        offline: moment,
        address: text,
        user_agent: text,
        created_at_ms: moment,
        refreshed_at_ms: "integer",
        refreshed_address: "text",
        ended_at_ms: "integer",
        end_reason: "text",
      },
    });
    await createTable(database, kind, {
      name: "refresh_tokens",
      columns: {
        token_hash: "text primary key",
        connection_id: text,
        created_at_ms: moment,
        expires_at_ms: moment,
        used_at_ms: "integer",
      },
    });
    await sql`create index authorization_codes_by_expiry on authorization_codes (expires_at_ms)`.execute(
      database,
    );
    await sql`create index device_codes_by_expiry on device_codes (expires_at_ms)`.execute(
      database,
    );
    await sql`create index connections_by_workspace on connections (workspace_id, created_at_ms)`.execute(
      database,
    );
    await sql`create index connections_by_user on connections (user_id, created_at_ms)`.execute(
      database,
    );
    await sql`create index refresh_tokens_by_connection on refresh_tokens (connection_id)`.execute(
      database,
    );
    await sql`create index oauth_clients_by_creation on oauth_clients (created_at_ms)`.execute(
      database,
    );
    const type = kind === "postgres" ? sql`text collate "C"` : sql`text`;
    await sql`alter table llm_keys add column connection_id ${type}`.execute(database);
    await sql`alter table llm_keys add column connection_scopes ${type}`.execute(database);
    await sql`alter table llm_keys add column token_expires_at_ms ${sql.raw(kind === "postgres" ? "bigint" : "integer")}`.execute(
      database,
    );
    await sql`create index llm_keys_by_connection on llm_keys (connection_id) where connection_id is not null`.execute(
      database,
    );
  },
};

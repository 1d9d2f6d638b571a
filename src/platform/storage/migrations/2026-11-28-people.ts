import { sql } from "kysely";
import { createTable, type TableDefinition } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

const ofUser = "text not null references users (id) on delete cascade";
const ofOrganization = "text not null references organizations (id) on delete cascade";
const written = { created_at: "text not null", updated_at: "text not null" };

/**
 * The first five are the library's for sign-in, which keeps times as ISO 8601 in UTC and truths as 0 and 1;
 * the others are ours, with times in milliseconds.
 */
const tables: readonly TableDefinition[] = [
  {
    name: "users",
    columns: {
      id: "text not null primary key",
      name: "text not null",
      email: "text not null unique",
      email_verified: "integer not null",
      image: "text",
      operator: "integer not null default 0",
      ...written,
    },
  },
  {
    name: "user_sessions",
    columns: {
      id: "text not null primary key",
      token: "text not null unique",
      user_id: ofUser,
      expires_at: "text not null",
      ip_address: "text",
      user_agent: "text",
      workspace_id: "text references workspaces (id)",
      ...written,
    },
  },
  {
    name: "user_accounts",
    columns: {
      id: "text not null primary key",
      account_id: "text not null",
      provider_id: "text not null",
      user_id: ofUser,
      access_token: "text",
      refresh_token: "text",
      id_token: "text",
      access_token_expires_at: "text",
      refresh_token_expires_at: "text",
      scope: "text",
      password: "text",
      ...written,
    },
    constraints: ["unique (provider_id, account_id)"],
  },
  {
    name: "user_verifications",
    columns: {
      id: "text not null primary key",
      identifier: "text not null",
      value: "text not null",
      expires_at: "text not null",
      ...written,
    },
  },
  {
    name: "passkeys",
    columns: {
      id: "text not null primary key",
      name: "text",
      public_key: "text not null",
      user_id: ofUser,
      credential_id: "text not null unique",
      counter: "integer not null",
      device_type: "text not null",
      backed_up: "integer not null",
      transports: "text",
      created_at: "text",
      aaguid: "text",
    },
  },
  {
    name: "organizations",
    columns: {
      id: "text not null primary key",
      name: "text not null",
      created_at_ms: "integer not null",
    },
  },
  {
    name: "organization_members",
    columns: {
      organization_id: ofOrganization,
      user_id: ofUser,
      role: "text not null",
      joined_at_ms: "integer not null",
    },
    constraints: ["primary key (organization_id, user_id)"],
  },
  {
    name: "organization_invitations",
    columns: {
      id: "text not null primary key",
      organization_id: ofOrganization,
      email: "text not null",
      role: "text not null",
      token_hash: "text not null unique",
      inviter_user_id: "text not null",
      created_at_ms: "integer not null",
      expires_at_ms: "integer not null",
      accepted_at_ms: "integer",
      revoked_at_ms: "integer",
    },
  },
  {
    name: "owner_claims",
    columns: {
      id: "text not null primary key",
      token_hash: "text not null",
      expires_at_ms: "integer not null",
      claimed_at_ms: "integer",
      user_id: "text",
    },
  },
];

const indexes = [
  sql`create index user_sessions_by_user on user_sessions (user_id)`,
  sql`create index user_accounts_by_user on user_accounts (user_id)`,
  sql`create index user_verifications_by_identifier on user_verifications (identifier)`,
  sql`create index passkeys_by_user on passkeys (user_id)`,
  sql`create index organization_members_by_user on organization_members (user_id)`,
  sql`create index organization_invitations_by_organization on organization_invitations (organization_id)`,
  sql`create unique index workspaces_by_owner on workspaces (owner_user_id) where owner_user_id is not null`,
  sql`create unique index workspaces_by_organization on workspaces (organization_id) where organization_id is not null`,
];

/** Users and their sessions, organisations with members and invitations, and whose each workspace is. */
export const people: Migration = {
  name: "2026-11-28-people",
  async up(database, kind) {
    for (const table of tables) await createTable(database, kind, table);
    const type = kind === "postgres" ? sql`text collate "C"` : sql`text`;
    await sql`alter table workspaces add column owner_user_id ${type} references users (id)`.execute(
      database,
    );
    await sql`alter table workspaces add column organization_id ${type} references organizations (id)`.execute(
      database,
    );
    for (const index of indexes) await index.execute(database);
  },
};

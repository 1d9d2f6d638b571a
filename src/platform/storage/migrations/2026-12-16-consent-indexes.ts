import { sql } from "kysely";
import type { Migration } from "../migrate.ts";

/** Finds what bounds pending codes and registrations without reading them all, and a connection by its key or client. */
export const consentIndexes: Migration = {
  name: "2026-12-16-consent-indexes",
  async up(database) {
    await sql`create index device_codes_by_address on device_codes (address, expires_at_ms)`.execute(
      database,
    );
    await sql`create index authorization_codes_by_user on authorization_codes (user_id, expires_at_ms)`.execute(
      database,
    );
    await sql`create index oauth_clients_by_address on oauth_clients (registered_address, created_at_ms)`.execute(
      database,
    );
    await sql`create index oauth_clients_unused on oauth_clients (created_at_ms) where last_used_at_ms is null`.execute(
      database,
    );
    await sql`create index connections_by_key on connections (key_id)`.execute(database);
    await sql`create index connections_by_client on connections (client_id) where client_id is not null`.execute(
      database,
    );
  },
};

import { Database } from "bun:sqlite";
import { Client } from "pg";

/**
 * Rows of a query on the database of a gateway, from outside of it: a path of SQLite or a URL of
 * Postgres.
 */
export async function queryDatabase(
  place: string,
  text: string,
): Promise<Record<string, unknown>[]> {
  return place.startsWith("postgres:") ? queryPostgres(place, text) : querySqlite(place, text);
}

function querySqlite(path: string, text: string): Record<string, unknown>[] {
  using database = new Database(path, { readwrite: true, create: false });
  return database.query<Record<string, unknown>, []>(text).all();
}

async function queryPostgres(
  connectionString: string,
  text: string,
): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

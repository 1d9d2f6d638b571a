import { Client } from "pg";

/** How long each flush of the log to disk takes, in milliseconds. */
export const slowDiskMs = 5;

/**
 * Makes every commit of a Postgres server wait, as on a slow disk: the session that flushes the log
 * waits first, and those that commit meanwhile wait for its flush. The change applies to all
 * connections at once.
 * https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-COMMIT-DELAY
 */
export async function slowDownCommits(maintenanceUrl: string): Promise<void> {
  const client = new Client({ connectionString: maintenanceUrl });
  await client.connect();
  await client.query(`alter system set commit_delay = ${slowDiskMs * 1_000}`);
  await client.query("alter system set commit_siblings = 0");
  await client.query("select pg_reload_conf()");
  await client.end();
}

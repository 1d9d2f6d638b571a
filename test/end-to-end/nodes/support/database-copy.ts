import type { Nodes } from "./nodes.ts";

/** Copies every table of a database aside, as a backup would. */
export async function backUp({ query }: Pick<Nodes, "query">): Promise<void> {
  const names = await tableNames({ query });
  await query(
    [
      // All tables as they were at one moment.
      "begin isolation level repeatable read",
      "create schema backup",
      ...names.map((name) => `create table backup."${name}" as table public."${name}"`),
      "commit",
    ].join(";"),
  );
}

/**
 * Sets the database back to that copy in one transaction, as a restore does beneath gateways that
 * run.
 */
export async function restore({ query }: Pick<Nodes, "query">): Promise<void> {
  const names = await tableNames({ query });
  await query(
    [
      // Tables that are only ever appended to refuse anything else by triggers.
      "begin",
      "set local session_replication_role = replica",
      `truncate ${names.map((name) => `public."${name}"`).join(", ")}`,
      ...names.map((name) => `insert into public."${name}" select * from backup."${name}"`),
      "commit",
    ].join(";"),
  );
}

async function tableNames({ query }: Pick<Nodes, "query">): Promise<string[]> {
  const rows = await query(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace
      and relkind in ('r', 'p') and not relispartition order by 1`,
  );
  return rows.map(({ name }) => String(name));
}

import { describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { freshDatabase } from "../../../../../test/support/postgres.ts";
import { openStorage } from "../../open-storage.ts";
import { migrations } from "../index.ts";
import { operatorKeys } from "./2026-11-28-operator-keys.ts";
import { withTables } from "../../with-tables.ts";

const engines: [string, () => Promise<string>][] = [
  [
    "SQLite",
    () => Promise.resolve(`sqlite:${join(mkdtempSync(join(tmpdir(), "switchyard-")), "test.db")}`),
  ],
  ["Postgres", freshDatabase],
];

describe.each(engines)("keys of the release before on %s", (_, freshUrl) => {
  test("have no operator's rights, and those of apps are for inference", async () => {
    const url = await freshUrl();
    const open = (count: number) =>
      openStorage({
        url,
        durability: "process",
        migrations: migrations.slice(0, count),
        commitStatements: { inserts: [], adds: [] },
      });
    const at = migrations.indexOf(operatorKeys);
    const before = await open(at);
    const database = withTables<Record<string, never>>(before.database);
    const insertKey = (
      id: string,
      { parent = null as string | null, allowed = null as string | null },
    ) =>
      sql`insert into llm_keys (id, hash, workspace_id, name, label, created_at_ms, disabled, include_byok_in_limit,
            creator_user_id, parent_key_id, allowed_endpoints)
          values (${id}, ${id}, 'ws_1', ${id}, ${id}, 1, 0, 0, 'usr_1', ${parent}, ${allowed})`;
    await sql`insert into users (id, name, email, email_verified, created_at, updated_at, operator, two_factor_enabled)
              values ('usr_1', 'Ann', 'ann@example.com', 1, '', '', 1, 0)`.execute(database);
    await sql`insert into workspaces (id, name, plan, created_at_ms) values ('ws_1', 'W', 'payg', 1)`.execute(
      database,
    );
    await insertKey("own", {}).execute(database);
    await insertKey("app", {}).execute(database);
    await insertKey("child", { parent: "app" }).execute(database);
    await insertKey("narrowed", { allowed: '["/models"]' }).execute(database);
    for (const id of ["app", "narrowed"])
      await sql`insert into connections (id, key_id, workspace_id, user_id, client_name, origin, scopes, offline,
                  address, user_agent, created_at_ms)
                values (${`con_${id}`}, ${id}, 'ws_1', 'usr_1', 'app.example', 'key', '[]', 0, '', '', 1)`.execute(
        database,
      );
    await before.close();
    const after = await open(at + 1);
    const migrated = withTables<Record<string, never>>(after.database);
    // The release before writes without the new columns.
    await insertKey("later", {}).execute(migrated);
    const { rows } = await sql<{
      id: string;
      allowed_endpoints: string | null;
      operator_user_id: null;
    }>`
      select id, allowed_endpoints, operator_user_id from llm_keys`.execute(migrated);
    await after.close();
    expect(rows.map(({ operator_user_id: operator }) => operator)).toEqual(rows.map(() => null));
    const allowed = Object.fromEntries(rows.map((row) => [row.id, row.allowed_endpoints]));
    expect(allowed).toEqual({
      own: null,
      later: null,
      app: expect.stringContaining("/chat/completions"),
      child: allowed["app"] ?? "",
      narrowed: '["/models"]',
    });
    expect(allowed["app"]).not.toContain("/credits");
  });
});

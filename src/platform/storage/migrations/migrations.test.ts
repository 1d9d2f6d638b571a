import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { sql } from "kysely";
import { moreThanAdded } from "../../../../test/support/added-only.ts";
import { dayMs, systemClock } from "../../kernel/clock.ts";
import { createTable } from "../create-table.ts";
import { migrations } from "./index.ts";

test("migration names begin with a past date, so that later ones sort after them", () => {
  const tomorrow = new Date(systemClock.nowMs() + dayMs).toISOString().slice(0, 10);
  for (const { name } of migrations) {
    expect(name).toMatch(/^\d{4}-\d{2}-\d{2}-[a-z]/);
    expect(name < tomorrow).toBe(true);
  }
});

/** Migrations that do more and that the release before works beside, with the test that shows it. */
const shownByTest: Readonly<Record<string, string>> = {
  "2026-11-25-months": "src/insights/record-months.test.ts",
  "2026-11-26-closed-months": "src/billing/ledger/closed/closed-months.test.ts",
  "2026-11-28-operator-keys": "src/platform/storage/migrations/accounts/operator-keys.test.ts",
};

/** @see `docs/decisions/0118-two-releases-on-one-database.md` */
describe.each(["sqlite", "postgres"] as const)("an additive migration on %s", (kind) => {
  const additive = migrations.filter(({ name }) => name.includes(" additive to "));
  test(`is declared as additive (${additive.length} of ${migrations.length} are)`, async () => {
    const released = migrations.map(({ name }) => name.split(" additive to ")[0]);
    for (const migration of additive) {
      const shownIn = shownByTest[migration.name.split(" additive to ")[0] ?? ""];
      if (shownIn === undefined) expect(await moreThanAdded(migration, kind)).toEqual([]);
      else expect(existsSync(shownIn)).toBe(true);
      expect(released).toContain(migration.name.split(" additive to ")[1]);
    }
  });

  const more = (statement: string): Promise<string[]> =>
    moreThanAdded(
      { up: async (database) => void (await sql.raw(statement).execute(database)) },
      kind,
    );

  test.each([
    "alter table transfers add column note text",
    "alter table transfers add column note text not null default 'none'",
    "create index transfers_by_note on transfers (note)",
  ])("may contain: %s", async (statement) => {
    expect(await more(statement)).toEqual([]);
  });

  test("may create a table in any form and fill it", async () => {
    const up = async (database: Parameters<typeof createTable>[0]): Promise<void> => {
      await createTable(database, kind, {
        name: "notes",
        columns: { id: "text primary key", note: "text not null" },
      });
      await sql.raw("create unique index notes_by_note on notes (note)").execute(database);
      await sql.raw("insert into notes select id, id from transfers").execute(database);
    };
    expect(await moreThanAdded({ up }, kind)).toEqual([]);
  });

  test.each([
    "alter table transfers drop column note",
    "alter table transfers rename column note to text",
    "alter table transfers rename to movements",
    "alter table transfers alter column note type bigint",
    "alter table transfers add column note text not null",
    "alter table transfers add column note text not null default null",
    "alter table transfers add column note text unique",
    "alter table transfers add column note text check (note <> '')",
    "alter table transfers add column note text, drop column id",
    "alter table transfers add constraint named check (note <> '')",
    "create unique index transfers_by_note on transfers (note)",
    "create trigger noted before insert on transfers execute function note()",
    "drop table transfers",
    "drop index transfers_by_note",
    "update transfers set note = ''",
    "delete from transfers",
    "insert into transfers (id) values ('a')",
  ])("may not contain: %s", async (statement) => {
    expect(await more(statement)).toEqual([statement]);
  });
});

import { sql } from "kysely";
import { createTable } from "../../src/platform/storage/create-table.ts";
import type { Migration } from "../../src/platform/storage/storage.ts";
import { migrations } from "../../src/platform/storage/migrations/index.ts";

/**
 * Number of releases by which a gateway program is ahead that loads this file first. Each of these
 * releases adds a table, an index, and a column to a table that requests write.
 */
const releasesAhead = Number(process.env["TEST_RELEASES_AHEAD"] ?? 1);
/** The table that each release adds a column to; only one, so that no commit can deadlock. */
const grownTables = ["transfers", "generations"];

const addedBy = (release: number, previous: string): Migration => ({
  name: `9999-01-0${release}-more additive to ${previous}`,
  async up(database, kind) {
    await createTable(database, kind, {
      name: `added_${release}`,
      columns: { id: "text primary key", note: "text" },
    });
    await sql
      .raw(`create index added_${release}_by_note on added_${release} (note)`)
      .execute(database);
    await sql
      .raw(
        `alter table ${grownTables[release - 1]} add column added_${release} text not null default 'none'`,
      )
      .execute(database);
  },
});

for (let release = 1; release <= releasesAhead; release += 1) {
  const [previous = ""] = migrations.at(-1)?.name.split(" additive to ") ?? [];
  (migrations as Migration[]).push(addedBy(release, previous));
}

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { putMigratedSqlite } from "../../../test/support/migrated-sqlite.ts";
import { migratedDatabase } from "../../../test/support/postgres.ts";
import { migrations } from "../../platform/storage/migrations/index.ts";
import { openStorage } from "../../platform/storage/open-storage.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { CredentialDirectory } from "../keys/credential-directory.ts";
import { TeamEditor } from "./team-editor.ts";
import { TeamStore, type TeamTables } from "./team-store.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-teams-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const engines: [string, () => Promise<string>][] = [
  ["SQLite", () => putMigratedSqlite(root)],
  ["Postgres", migratedDatabase],
];

describe.each(engines)("teams of two gateways on %s", (_, freshUrl) => {
  let storage: Storage<TeamTables>;
  beforeAll(async () => {
    const commitStatements = { inserts: [], adds: [] };
    const url = await freshUrl();
    storage = await openStorage({ url, durability: "process", migrations, commitStatements });
  }, 60_000);
  afterAll(() => storage.close());

  const gateway = (): TeamEditor =>
    new TeamEditor({
      store: new TeamStore(storage.database),
      directory: { putTeam: () => undefined } as unknown as CredentialDirectory,
      clock: new FakeClock(),
      peopleIn: async () => [],
    });

  test("a budget takes the place of the one that its change has seen, and of no other", async () => {
    const [one, other] = [gateway(), gateway()];
    const made = await one.create("ws_1", { name: "Red", allowedModels: null });
    expect(await one.setBudget(made, "bud_1")).toMatchObject({ name: "Red", budgetId: "bud_1" });
    expect(await other.setBudget(made, "bud_2")).toBeUndefined();
    const named = await other.change(made, { name: "Blue" });
    expect(named).toMatchObject({ name: "Blue", budgetId: "bud_1" });
    expect(await other.setBudget(named, null)).toMatchObject({ name: "Blue", budgetId: null });
    expect(await one.setBudget(named, "bud_3")).toBeUndefined();
  });
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { putMigratedSqlite } from "../../../test/support/migrated-sqlite.ts";
import { BlockingBudgets } from "../../billing/budgets/blocking-budgets.ts";
import { BudgetEditor } from "../../billing/budgets/budget-editor.ts";
import { BudgetStore, type BudgetTables } from "../../billing/budgets/budget-store.ts";
import type { CredentialDirectory } from "../../identity/keys/credential-directory.ts";
import { TeamEditor } from "../../identity/teams/team-editor.ts";
import { TeamStore, type Team, type TeamTables } from "../../identity/teams/team-store.ts";
import { WorkspaceStore } from "../../identity/workspaces/workspace-store.ts";
import { migrations } from "../../platform/storage/migrations/index.ts";
import { openStorage } from "../../platform/storage/open-storage.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import type { Dependencies } from "../dependencies.ts";
import { boundTeam, unboundTeam } from "./team-budget.ts";

const workspaceId = "ws_1";
const root = mkdtempSync(join(tmpdir(), "switchyard-team-budgets-"));
let storage: Storage<TeamTables & BudgetTables>;
let there: ReturnType<typeof gateway>;
beforeAll(async () => {
  const commitStatements = { inserts: [], adds: [] };
  const url = await putMigratedSqlite(root);
  storage = await openStorage({ url, durability: "process", migrations, commitStatements });
  await new WorkspaceStore(withTables(storage.database)).insert({
    id: workspaceId,
    name: "Teams",
    plan: "enterprise",
    createdAtMs: 0,
  });
  there = gateway();
}, 60_000);
afterAll(async () => {
  await storage.close();
  rmSync(root, { recursive: true, force: true });
});

/** A gateway that does `meanwhile` once, right before it writes a budget. */
function gateway(meanwhile: () => Promise<void> = async () => undefined) {
  const blocking = new BlockingBudgets();
  const clock = new FakeClock();
  const writing = [meanwhile];
  const teams = new TeamStore(withTables(storage.database));
  const editor = new BudgetEditor({
    store: new BudgetStore(withTables(storage.database)),
    blocking,
    clock,
    ledger: { watch: async () => writing.pop()?.() },
    knows: async (_: string, { id }: { id: string }) =>
      (await teams.find(workspaceId, id)) !== undefined,
  } as unknown as ConstructorParameters<typeof BudgetEditor>[0]);
  const teamEditor = new TeamEditor({
    store: teams,
    directory: {
      putTeam: () => undefined,
      removeTeam: () => undefined,
    } as unknown as CredentialDirectory,
    clock,
    peopleIn: async () => [],
  });
  const deps = { budgets: { editor }, teamEditor } as unknown as Dependencies;
  const bound = (team: Team, limit: number | null) => boundTeam(deps, { team, fields: { limit } });
  return { blocking, editor, teamEditor, deps, bound };
}

async function boundedTeam(name: string): Promise<Team> {
  const made = await there.teamEditor.create(workspaceId, { name, allowedModels: null });
  return there.bound(made, 5);
}

async function removeThere(team: Team): Promise<void> {
  await there.teamEditor.remove(team);
  await unboundTeam(there.deps, team);
}

test("a limit for a team that another gateway removes meanwhile leaves no budget", async () => {
  for (const withBudget of [true, false]) {
    const team = await boundedTeam(withBudget ? "Red" : "Blue");
    const now = withBudget ? team : await there.bound(team, null);
    const here = gateway(() => removeThere(now));
    const refusal = await here.bound(now, 7).catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      code: "not_found",
      message: expect.stringContaining("no team"),
    });
    expect(here.blocking.has(workspaceId)).toBe(false);
    expect(await here.editor.list(workspaceId)).toEqual([]);
  }
});

test("a budget for a team that is removed meanwhile is not made", async () => {
  const team = await there.teamEditor.create(workspaceId, { name: "Grey", allowedModels: null });
  const here = gateway(() => removeThere(team));
  const fields = { scope: "team", subject: team.id, period: "monthly", action: "block" } as const;
  const making = here.editor.create(workspaceId, {
    ...fields,
    name: "Grey",
    timeZone: null,
    limitNano: 1n,
    thresholds: [],
    emails: [],
    webhookUrl: null,
  });
  const refusal = await making.catch((error: unknown) => error);
  expect(refusal).toMatchObject({ code: "bad_request", param: "subject" });
  expect(here.blocking.has(workspaceId)).toBe(false);
  expect(await here.editor.list(workspaceId)).toEqual([]);
});

test("a limit for a team whose budget another gateway replaces meanwhile is the new budget's", async () => {
  const team = await boundedTeam("Green");
  const here = gateway(async () => void (await there.bound(await there.bound(team, null), 6)));
  const bounded = await here.bound(team, 7);
  expect(await here.editor.list(workspaceId)).toMatchObject([
    { id: bounded.budgetId, limitNano: 7_000_000_000n },
  ]);
});

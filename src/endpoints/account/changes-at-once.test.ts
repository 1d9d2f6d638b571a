import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { MemoryCommits } from "../../../test/support/memory-commits.ts";
import { putMigratedSqlite } from "../../../test/support/migrated-sqlite.ts";
import { BlockingBudgets } from "../../billing/budgets/blocking-budgets.ts";
import { BudgetEditor } from "../../billing/budgets/budget-editor.ts";
import { BudgetStore, type BudgetTables } from "../../billing/budgets/budget-store.ts";
import type { CustomerPlan } from "../../billing/customers/customer.ts";
import type { CustomerTables } from "../../billing/customers/customer-store.ts";
import { openCustomers } from "../../billing/customers/open-customers.ts";
import type { LedgerPort } from "../../billing/ledger/ledger-port.ts";
import type { AliasTables } from "../../identity/workspaces/alias-store.ts";
import { openAliases } from "../../identity/workspaces/alias-editor.ts";
import { openPresets } from "../../identity/presets/preset-editor.ts";
import type { PresetTables } from "../../identity/presets/preset-store.ts";
import { WorkspaceStore } from "../../identity/workspaces/workspace-store.ts";
import { migrations } from "../../platform/storage/migrations/index.ts";
import { openStorage } from "../../platform/storage/open-storage.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

type Tables = PresetTables & AliasTables & BudgetTables & CustomerTables;

const workspaceId = "ws_1";
const clock = new FakeClock();
const root = mkdtempSync(join(tmpdir(), "switchyard-changes-"));
let storage: Storage<Tables>;
beforeAll(async () => {
  const commitStatements = { inserts: [], adds: [] };
  const url = await putMigratedSqlite(root);
  storage = await openStorage({ url, durability: "process", migrations, commitStatements });
  const workspace = { id: workspaceId, name: "", plan: "enterprise", createdAtMs: 0 } as const;
  await new WorkspaceStore(withTables(storage.database)).insert(workspace);
}, 60_000);
afterAll(async () => {
  await storage.close();
  rmSync(root, { recursive: true, force: true });
});

/** Returns the code of the refusal of a change; undefined where it was made. */
const refusalOf = (change: Promise<unknown>): Promise<unknown> =>
  change.then(
    () => undefined,
    (error: { code?: string }) => error.code ?? error,
  );

/** Two gateways that have heard nothing of each other's changes yet. */
const atBoth = async <Parts>(open: () => Promise<Parts>): Promise<[Parts, Parts]> => [
  await open(),
  await open(),
];

test("gateways that change a preset at once make versions of each other's", async () => {
  const preset = { workspaceId, slug: "both", name: "Both", description: null };
  const first = await openPresets(withTables(storage.database), clock);
  await first.presetEditor.create({ ...preset, config: { temperature: 1 } }, "usr_1");
  const [here, there] = await atBoth(() => openPresets(withTables(storage.database), clock));
  await here.presetEditor.change(preset, { config: { temperature: 0.5 } }, "usr_1");
  const changed = await there.presetEditor.change(preset, { config: { top_p: 0.9 } }, "usr_2");
  expect(changed).toMatchObject({ version: 3, config: { temperature: 0.5, top_p: 0.9 } });
  expect(there.presets.resolvePreset(workspaceId, "both")).toEqual(changed);
  await here.presetEditor.remove(preset);
  const late = there.presetEditor.change(preset, { name: "Late" }, "usr_2");
  expect(await refusalOf(late)).toBe("not_found");
});

test("gateways that change an alias at once keep each other's fields", async () => {
  const alias = { workspaceId, name: "fast", description: null, target: "acme/small" };
  const first = await openAliases(withTables(storage.database), clock);
  await first.aliasEditor.create(alias);
  const [here, there] = await atBoth(() => openAliases(withTables(storage.database), clock));
  await here.aliasEditor.change(alias, { target: "acme/large" });
  const changed = await there.aliasEditor.change(alias, { description: "The large one" });
  expect(changed).toMatchObject({ target: "acme/large", description: "The large one" });
});

test("gateways that change a budget at once keep each other's fields", async () => {
  const budgetsWith = (meanwhile: () => Promise<unknown>) =>
    new BudgetEditor({
      store: new BudgetStore(withTables(storage.database)),
      blocking: new BlockingBudgets(),
      clock,
      ledger: { watch: async () => void (await meanwhile()) },
    } as unknown as ConstructorParameters<typeof BudgetEditor>[0]);
  const there = budgetsWith(() => Promise.resolve());
  const { id } = await there.create(workspaceId, {
    name: "Both",
    scope: "workspace",
    subject: null,
    period: "monthly",
    timeZone: null,
    action: "block",
    limitNano: 9n,
    thresholds: [],
    emails: [],
    webhookUrl: null,
  });
  const reference = { workspaceId, id };
  const here = budgetsWith(() => there.change(reference, { limitNano: 3n }));
  expect(await here.change(reference, { name: "Ours" })).toMatchObject({
    name: "Ours",
    limitNano: 3n,
  });
});

test("gateways that change a customer at once keep each other's fields, and a removed one is gone", async () => {
  let meanwhile: () => Promise<unknown> = () => Promise.resolve();
  const customersWith = (watch: () => Promise<void>) =>
    openCustomers({
      database: withTables(storage.database),
      clock,
      encryptionKey: new Uint8Array(32),
      settings: { rule: undefined, mostPerWorkspace: 9 },
      ledger: { watch } as unknown as LedgerPort,
      blocking: new BlockingBudgets(),
      workspaceIds: () => [workspaceId],
      commits: new MemoryCommits(),
      onError: (error) => {
        throw error;
      },
    });
  const there = await customersWith(() => Promise.resolve());
  const here = await customersWith(async () => void (await meanwhile()));
  const plan: CustomerPlan = {
    type: "free",
    period: "monthly",
    allowanceNano: 9n,
    capNano: null,
    baseNano: 0n,
    weight: 10_000,
    weightsByModel: {},
  };
  const customer = await there.editor.create({ workspaceId, externalId: "shop" }, { plan });
  meanwhile = () => there.editor.change(customer, { suspended: true });
  expect(await here.editor.change(customer, { name: "Shop" })).toMatchObject({
    name: "Shop",
    suspended: true,
  });
  meanwhile = () => there.editor.remove(customer);
  expect(await refusalOf(here.editor.change(customer, { name: "Late" }))).toBe("not_found");
  // Of two that create it at once, one does.
  const kiosk = { workspaceId, externalId: "kiosk" };
  meanwhile = () => there.editor.create(kiosk, {});
  expect(await refusalOf(here.editor.create(kiosk, { plan }))).toBe("conflict");
  await Promise.all([here.stop(), there.stop()]);
});

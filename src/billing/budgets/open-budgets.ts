import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { LlmKeyStore } from "../../identity/keys/llm-key-store.ts";
import type { Mailer } from "../../platform/notify/mailer.ts";
import { WebhookSender } from "../../platform/notify/webhook-sender.ts";
import { WebhookSecrets } from "../../platform/notify/webhook-secrets.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import type { UserStore } from "../../identity/people/user-store.ts";
import type { TeamStore } from "../../identity/teams/team-store.ts";
import { parseRange } from "../../platform/kernel/network/address-range.ts";
import { AlertStore, type AlertTables } from "./alert-store.ts";
import { BudgetEditor } from "./budget-editor.ts";
import { BudgetStore, type BudgetTables } from "./budget-store.ts";
import { BudgetWatch, type SpentBy } from "./budget-watch.ts";
import { DeliveryRunner } from "./delivery-runner.ts";
import type { BlockingBudgets } from "./blocking-budgets.ts";
import type { Budget } from "./budget.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

/** All database tables of budgets. */
export type BudgetsTables = BudgetTables & AlertTables;

/** Options of budgets. */
export interface BudgetsOptions {
  database: Kysely<BudgetsTables>;
  clock: Clock;
  encryptionKey: Uint8Array;
  mailer: Mailer | undefined;
  /** Ranges of the operator's own networks that webhooks may reach. */
  webhookNetworks: readonly string[];
  spentBy: SpentBy;
  /** Begins the sum of a budget in a time zone with what was spent before. */
  beginSum(budget: Budget): Promise<void>;
  users: UserStore;
  teams: Pick<TeamStore, "find">;
  llmKeys: LlmKeyStore;
  blocking: BlockingBudgets;
  ledger: Pick<LedgerPort, "watch">;
}

/** Budgets with their alerts. */
export interface Budgets {
  editor: BudgetEditor;
  alerts: AlertStore;
  watch: BudgetWatch;
  runner: DeliveryRunner;
}

/** Builds budgets and puts blocking ones in force. Nothing is checked before `watch` is started. */
export async function openBudgets({
  database,
  clock,
  users,
  llmKeys,
  mailer,
  spentBy,
  ...options
}: BudgetsOptions): Promise<Budgets> {
  const store = new BudgetStore(withTables(database));
  const alerts = new AlertStore(withTables(database));
  const secrets = new WebhookSecrets(options.encryptionKey);
  const allowed = options.webhookNetworks.flatMap((range) => parseRange(range) ?? []);
  const webhooks = new WebhookSender({ guard: { allowed }, clock });
  const emailsOf = async (workspaceId: string) =>
    (await users.peopleIn(workspaceId)).map(({ email }) => email);
  const shared = { alerts, webhooks, secrets, mailer, clock };
  const runner = new DeliveryRunner({
    ...shared,
    budgets: store,
    isMember: async (workspaceId, email) => (await emailsOf(workspaceId)).includes(email),
  });
  const { blocking, ledger } = options;
  for (const budget of await store.all()) {
    if (budget.action === "block") await ledger.watch(budget);
    blocking.put(budget);
  }
  const editor = new BudgetEditor({
    ...shared,
    store,
    emailsOf,
    blocking,
    ledger,
    beginSum: options.beginSum,
    async knows(workspaceId, { scope, id }) {
      if (scope === "team") return (await options.teams.find(workspaceId, id))?.id === id;
      if (scope === "key") return (await llmKeys.creatorsOf(workspaceId, [id])).has(id);
      if ((await llmKeys.createdBy(workspaceId, [id])).length > 0) return true;
      return (await users.peopleIn(workspaceId)).some((person) => person.id === id);
    },
  });
  return { editor, alerts, runner, watch: new BudgetWatch({ ...shared, store, runner, spentBy }) };
}

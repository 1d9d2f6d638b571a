import type { Clock } from "../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId, newId } from "../../platform/kernel/ids.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { Mailer } from "../../platform/notify/mailer.ts";
import { UnsafeTargetError } from "../../platform/notify/public-address.ts";
import type { WebhookSender } from "../../platform/notify/webhook-sender.ts";
import type { WebhookSecrets } from "../../platform/notify/webhook-secrets.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import { eachSubject, isSenderScope, type Budget, type BudgetAlerts } from "./budget.ts";
import type { BlockingBudgets } from "./blocking-budgets.ts";
import type { BudgetStore } from "./budget-store.ts";

/** The most budgets of a workspace. */
const budgetsMax = 100;

/** The fields of a budget that a caller sets. */
export type BudgetFields = Pick<
  Budget,
  | "name"
  | "scope"
  | "subject"
  | "period"
  | "timeZone"
  | "action"
  | "limitNano"
  | "thresholds"
  | "emails"
  | "webhookUrl"
>;

interface EditorOptions {
  store: BudgetStore;
  webhooks: WebhookSender;
  secrets: WebhookSecrets;
  mailer: Mailer | undefined;
  blocking: BlockingBudgets;
  ledger: Pick<LedgerPort, "watch">;
  clock: Clock;
  /** Returns the addresses of a workspace's users. */
  emailsOf(workspaceId: string): Promise<readonly string[]>;
  /** Returns whether the team, key or user belongs to the workspace. */
  knows(
    workspaceId: string,
    subject: { scope: "team" | "key" | "user"; id: string },
  ): Promise<boolean>;
  /** Begins the sum of a budget in a time zone with what was spent before. */
  beginSum(budget: Budget): Promise<void>;
}

const noBudget = (): GatewayError =>
  new GatewayError("not_found", "There is no budget with this id. GET /budgets lists them.");
/** Creates, changes and deletes budgets, one change of a workspace at a time. */
export class BudgetEditor {
  private readonly mutex = new KeyedMutex();

  constructor(private readonly options: EditorOptions) {}

  list(workspaceId: string): Promise<Budget[]> {
    return this.options.store.list(workspaceId);
  }

  /** Returns a budget. Throws `not_found`, also for budgets of other workspaces. */
  async find({ workspaceId, id }: { workspaceId: string; id: string }): Promise<Budget> {
    const budget = mayBeId(id) ? await this.options.store.find(id) : undefined;
    if (budget === undefined || budget.workspaceId !== workspaceId) throw noBudget();
    return budget;
  }

  /**
   * Creates a budget. Throws `bad_request`, `not_configured` where mail is requested and cannot be
   * sent, and `conflict` where there are too many budgets.
   */
  create(workspaceId: string, fields: BudgetFields): Promise<Budget> {
    return this.mutex.run(workspaceId, async () => {
      const { store, clock } = this.options;
      if ((await store.list(workspaceId)).length >= budgetsMax) {
        throw new GatewayError("conflict", `The workspace has ${budgetsMax} budgets. Delete some.`);
      }
      await this.assertSubject(workspaceId, fields);
      await this.assertReachable(workspaceId, fields);
      const nowMs = clock.nowMs();
      const budget: Budget = {
        ...fields,
        id: newId("bud", nowMs),
        workspaceId,
        secretVersion: 1,
        createdAtMs: nowMs,
        updatedAtMs: null,
      };
      return this.begin(budget);
    });
  }

  /** Puts a new budget in force. One in a time zone counts before what was spent is read. */
  private async begin(budget: Budget): Promise<Budget> {
    const { store, blocking, ledger, beginSum } = this.options;
    try {
      if (budget.timeZone !== null) {
        blocking.put({ ...budget, action: "alert" });
        await beginSum(budget);
      }
      if (budget.action === "block") await ledger.watch(budget);
      await store.insert(budget);
      // A team that was removed meanwhile did not take this budget with it.
      await this.assertSubject(budget.workspaceId, budget);
    } catch (error) {
      blocking.remove(budget);
      await store.remove(budget.id);
      throw error;
    }
    blocking.put(budget);
    return budget;
  }

  /** Changes the given fields. Throws as `create` does, and `not_found`. */
  change(
    reference: { workspaceId: string; id: string },
    changes: Partial<BudgetFields>,
  ): Promise<Budget> {
    if (Object.keys(changes).length === 0) return this.find(reference);
    return this.write(reference, async (budget) => {
      await this.assertReachable(budget.workspaceId, {
        emails: changes.emails ?? [],
        webhookUrl: changes.webhookUrl ?? null,
      });
      return { ...budget, ...changes };
    });
  }

  /** Replaces the webhook's secret, which signs messages from now on. Throws `not_found`. */
  rotateSecret(reference: { workspaceId: string; id: string }): Promise<Budget> {
    return this.write(reference, async (budget) => ({
      ...budget,
      secretVersion: budget.secretVersion + 1,
    }));
  }

  /** Deletes a budget. Throws `not_found`. */
  remove(reference: { workspaceId: string; id: string }): Promise<void> {
    return this.mutex.run(reference.workspaceId, async () => {
      const budget = await this.find(reference);
      await this.options.store.remove(budget.id);
      this.options.blocking.remove(budget);
    });
  }

  /** Returns the secret that signs a budget's webhooks. */
  secretOf({ id, secretVersion: version }: Budget): string {
    return this.options.secrets.secretOf({ id, version });
  }

  private write(
    reference: { workspaceId: string; id: string },
    change: (budget: Budget) => Promise<Budget>,
  ): Promise<Budget> {
    return this.mutex.run(reference.workspaceId, async () => {
      const { store, blocking, ledger, clock } = this.options;
      const budget = await this.find(reference);
      const changed = { ...(await change(budget)), updatedAtMs: clock.nowMs() };
      if (changed.action === "block") await ledger.watch(changed);
      // Another gateway may have deleted it meanwhile.
      const stored = await store.change(budget, changed);
      if (stored === undefined) {
        blocking.remove(budget);
        throw noBudget();
      }
      blocking.put(stored);
      return stored;
    });
  }

  private async assertSubject(
    workspaceId: string,
    { scope, subject }: BudgetFields,
  ): Promise<void> {
    if ((scope === "workspace") !== (subject === null)) {
      throw badField(
        "subject",
        scope === "workspace"
          ? "must be left out for the workspace"
          : `is required: the ${scope} that is meant`,
      );
    }
    if (subject === eachSubject && !isSenderScope(scope))
      throw badField("subject", "may be * for customers and tags alone");
    if (
      (scope === "team" || scope === "key" || scope === "user") &&
      !(await this.options.knows(workspaceId, { scope, id: subject ?? "" }))
    ) {
      throw badField("subject", `is no ${scope} of this workspace`);
    }
  }

  /** Throws unless mail goes to people of the workspace, and webhooks to the public internet. */
  private async assertReachable(
    workspaceId: string,
    { emails, webhookUrl }: BudgetAlerts,
  ): Promise<void> {
    const { mailer, emailsOf, webhooks } = this.options;
    if (emails.length > 0) {
      if (mailer === undefined) {
        throw new GatewayError(
          "not_configured",
          "emails: this installation sends no mail. Use a webhook.",
          { param: "emails" },
        );
      }
      const known = new Set(await emailsOf(workspaceId));
      if (!emails.every((email) => known.has(email)))
        throw badField("emails", "must be addresses of people in this workspace");
    }
    if (webhookUrl === null) return;
    await webhooks.check(webhookUrl).catch((error: unknown) => {
      throw error instanceof UnsafeTargetError ? badField("webhook_url", error.message) : error;
    });
  }
}

import type { Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { mayBeId, newId } from "../../platform/lib/ids.ts";
import type { Mailer } from "../notify/mailer.ts";
import { UnsafeTargetError } from "../notify/public-address.ts";
import type { WebhookSecrets } from "../notify/webhook-secret.ts";
import type { WebhookSender } from "../notify/webhook-sender.ts";
import { Turns } from "../turns.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import type { BlockingBudgets } from "./blocking-budgets.ts";
import type { Budget, BudgetAlerts } from "./budget.ts";
import type { BudgetStore } from "./budget-store.ts";

/** Budgets that a workspace may have. */
const budgetsMax = 100;

/** What a caller says of a budget. */
export type BudgetFields = Pick<
  Budget,
  | "name"
  | "scope"
  | "subject"
  | "period"
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
  /** Addresses of everybody in a workspace. */
  emailsOf(workspaceId: string): Promise<readonly string[]>;
  /** Whether the key or the user is one of the workspace's. */
  knows(workspaceId: string, subject: { scope: "key" | "user"; id: string }): Promise<boolean>;
}

const noBudget = (): GatewayError =>
  new GatewayError("not_found", "There is no budget with this id. GET /budgets lists them.");
const wrong = (param: string, problem: string): GatewayError =>
  new GatewayError("bad_request", `${param}: ${problem}`, { param });

/** Makes, changes and deletes budgets. Changes of one workspace's happen one after the other. */
export class BudgetEditor {
  private readonly options: EditorOptions;
  private readonly turns = new Turns();

  constructor(options: EditorOptions) {
    this.options = options;
  }

  list(workspaceId: string): Promise<Budget[]> {
    return this.options.store.list(workspaceId);
  }

  /** Throws `not_found`, also for budgets of other workspaces. */
  async find({ workspaceId, id }: { workspaceId: string; id: string }): Promise<Budget> {
    const budget = mayBeId(id) ? await this.options.store.find(id) : undefined;
    if (budget === undefined || budget.workspaceId !== workspaceId) throw noBudget();
    return budget;
  }

  /** Throws `bad_request`, `not_configured` where mail is wanted and none can be sent, and `conflict` where there are too many. */
  create(workspaceId: string, fields: BudgetFields): Promise<Budget> {
    return this.turns.run(workspaceId, async () => {
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
      if (budget.action === "block") await this.options.ledger.watch(budget);
      await store.insert(budget);
      this.options.blocking.put(budget);
      return budget;
    });
  }

  /** Changes what is named. Throws as `create` does, and `not_found`. */
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

  /** Gives the webhook another secret; the next message is signed with it. Throws `not_found`. */
  rotateSecret(reference: { workspaceId: string; id: string }): Promise<Budget> {
    return this.write(reference, async (budget) => ({
      ...budget,
      secretVersion: budget.secretVersion + 1,
    }));
  }

  /** Throws `not_found`. */
  remove(reference: { workspaceId: string; id: string }): Promise<void> {
    return this.turns.run(reference.workspaceId, async () => {
      const budget = await this.find(reference);
      await this.options.store.remove(budget.id);
      this.options.blocking.remove(budget);
    });
  }

  /** What the webhook of a budget is signed with. */
  secretOf({ id, secretVersion: version }: Budget): string {
    return this.options.secrets.secretOf({ id, version });
  }

  private write(
    reference: { workspaceId: string; id: string },
    change: (budget: Budget) => Promise<Budget>,
  ): Promise<Budget> {
    return this.turns.run(reference.workspaceId, async () => {
      const changed = {
        ...(await change(await this.find(reference))),
        updatedAtMs: this.options.clock.nowMs(),
      };
      if (changed.action === "block") await this.options.ledger.watch(changed);
      await this.options.store.replace(changed);
      this.options.blocking.put(changed);
      return changed;
    });
  }

  private async assertSubject(
    workspaceId: string,
    { scope, subject }: BudgetFields,
  ): Promise<void> {
    if ((scope === "workspace") !== (subject === null)) {
      throw wrong(
        "subject",
        scope === "workspace"
          ? "must be left out for the workspace"
          : `is required: the ${scope} that is meant`,
      );
    }
    if (
      (scope === "key" || scope === "user") &&
      !(await this.options.knows(workspaceId, { scope, id: subject ?? "" }))
    ) {
      throw wrong("subject", `is no ${scope} of this workspace`);
    }
  }

  /** Mail goes to people of the workspace alone, and webhooks to the public internet. */
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
        throw wrong("emails", "must be addresses of people in this workspace");
    }
    if (webhookUrl === null) return;
    await webhooks.check(webhookUrl).catch((error: unknown) => {
      throw error instanceof UnsafeTargetError ? wrong("webhook_url", error.message) : error;
    });
  }
}

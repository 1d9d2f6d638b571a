import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId, newId } from "../../platform/kernel/ids.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { Mailer } from "../../platform/notify/mailer.ts";
import { UnsafeTargetError } from "../../platform/notify/public-address.ts";
import type { WebhookSender } from "../../platform/notify/webhook-sender.ts";
import type { WebhookSecrets } from "../../platform/notify/webhook-secrets.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import { eachSubject, isSenderScope } from "./budget.ts";
import type { BlockingBudgets } from "./blocking-budgets.ts";
import type { Budget, BudgetAction, BudgetAlerts, BudgetPeriod, BudgetScope } from "./budget.ts";

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
const wrong = (param: string, problem: string): GatewayError =>
  new GatewayError("bad_request", `${param}: ${problem}`, { param });

/** Creates, changes and deletes budgets, one change of a workspace at a time. */
export class BudgetEditor {
  private readonly options: EditorOptions;
  private readonly mutex = new KeyedMutex();

  constructor(options: EditorOptions) {
    this.options = options;
  }

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
    } catch (error) {
      blocking.remove(budget);
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
    if (subject === eachSubject && !isSenderScope(scope))
      throw wrong("subject", "may be * for customers and tags alone");
    if (
      (scope === "team" || scope === "key" || scope === "user") &&
      !(await this.options.knows(workspaceId, { scope, id: subject ?? "" }))
    ) {
      throw wrong("subject", `is no ${scope} of this workspace`);
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
        throw wrong("emails", "must be addresses of people in this workspace");
    }
    if (webhookUrl === null) return;
    await webhooks.check(webhookUrl).catch((error: unknown) => {
      throw error instanceof UnsafeTargetError ? wrong("webhook_url", error.message) : error;
    });
  }
}

interface BudgetRow {
  id: string;
  workspace_id: string;
  name: string;
  scope: string;
  subject: string | null;
  period: string;
  time_zone: string | null;
  action: string;
  limit_nano: number | bigint;
  /** JSON, as `emails` is. */
  thresholds: string;
  emails: string;
  webhook_url: string | null;
  secret_version: number;
  created_at_ms: number;
  updated_at_ms: number | null;
}

/** Rows of budgets. */
export interface BudgetTables {
  budgets: BudgetRow;
}

const fromRow = (row: BudgetRow): Budget => ({
  id: row.id,
  workspaceId: row.workspace_id,
  name: row.name,
  scope: row.scope as BudgetScope,
  subject: row.subject,
  period: row.period as BudgetPeriod,
  timeZone: row.time_zone,
  action: row.action as BudgetAction,
  limitNano: BigInt(row.limit_nano),
  thresholds: JSON.parse(row.thresholds) as number[],
  emails: JSON.parse(row.emails) as string[],
  webhookUrl: row.webhook_url,
  secretVersion: row.secret_version,
  createdAtMs: row.created_at_ms,
  updatedAtMs: row.updated_at_ms,
});

const rowOf = (budget: Budget): BudgetRow => ({
  id: budget.id,
  workspace_id: budget.workspaceId,
  name: budget.name,
  scope: budget.scope,
  subject: budget.subject,
  period: budget.period,
  time_zone: budget.timeZone,
  action: budget.action,
  limit_nano: Number(budget.limitNano),
  thresholds: JSON.stringify(budget.thresholds),
  emails: JSON.stringify(budget.emails),
  webhook_url: budget.webhookUrl,
  secret_version: budget.secretVersion,
  created_at_ms: budget.createdAtMs,
  updated_at_ms: budget.updatedAtMs,
});

/** Stores budgets. */
export class BudgetStore {
  private readonly database: Kysely<BudgetTables>;

  constructor(database: Kysely<BudgetTables>) {
    this.database = database;
  }

  /** Returns the budgets of a workspace, newest first. */
  async list(workspaceId: string): Promise<Budget[]> {
    const rows = await this.database
      .selectFrom("budgets")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .orderBy("id", "desc")
      .execute();
    return rows.map(fromRow);
  }

  /** Returns the budgets of all workspaces. */
  async all(): Promise<Budget[]> {
    return (await this.database.selectFrom("budgets").selectAll().orderBy("id").execute()).map(
      fromRow,
    );
  }

  async find(id: string): Promise<Budget | undefined> {
    const row = await this.database
      .selectFrom("budgets")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  async insert(budget: Budget): Promise<void> {
    await this.database.insertInto("budgets").values(rowOf(budget)).execute();
  }

  /** Writes all columns of a budget. */
  async replace(budget: Budget): Promise<void> {
    const { id: _id, workspace_id: _workspace, ...values } = rowOf(budget);
    await this.database.updateTable("budgets").set(values).where("id", "=", budget.id).execute();
  }

  async remove(id: string): Promise<void> {
    await this.database.deleteFrom("budgets").where("id", "=", id).execute();
  }
}

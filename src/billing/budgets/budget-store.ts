import type { Kysely } from "kysely";
import type { Budget, BudgetAction, BudgetPeriod, BudgetScope } from "./budget.ts";

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
  constructor(private readonly database: Kysely<BudgetTables>) {}

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

  /** Writes all columns of a budget. Returns false where it was deleted meanwhile. */
  async replace(budget: Budget): Promise<boolean> {
    const { id: _id, workspace_id: _workspace, ...values } = rowOf(budget);
    const { numUpdatedRows } = await this.database
      .updateTable("budgets")
      .set(values)
      .where("id", "=", budget.id)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  async remove(id: string): Promise<void> {
    await this.database.deleteFrom("budgets").where("id", "=", id).execute();
  }
}

import type { Kysely } from "kysely";
import { recordColumns, type RowOf } from "../../platform/storage/record-columns.ts";
import type { Budget } from "./budget.ts";

/** Rows of budgets. */
export interface BudgetTables {
  budgets: RowOf<Budget>;
}

const { fromRow, rowOf } = recordColumns<Budget>({
  id: "plain",
  workspaceId: "plain",
  name: "plain",
  scope: "plain",
  subject: "plain",
  period: "plain",
  timeZone: "plain",
  action: "plain",
  limitNano: "nano",
  thresholds: "json",
  emails: "json",
  webhookUrl: "plain",
  secretVersion: "plain",
  createdAtMs: "plain",
  updatedAtMs: "plain",
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

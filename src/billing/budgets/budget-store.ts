import type { Kysely } from "kysely";
import { changesOf } from "../../platform/storage/changes-of.ts";
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

  /**
   * Writes the fields in which a budget differs from before, and returns it as it is stored then;
   * undefined where it was deleted meanwhile.
   */
  async change(before: Budget, after: Budget): Promise<Budget | undefined> {
    const row = await this.database
      .updateTable("budgets")
      .set({ ...changesOf(rowOf(before), rowOf(after)), updated_at_ms: after.updatedAtMs })
      .where("id", "=", before.id)
      .returningAll()
      .executeTakeFirst();
    return row && fromRow(row);
  }

  async remove(id: string): Promise<void> {
    await this.database.deleteFrom("budgets").where("id", "=", id).execute();
  }
}

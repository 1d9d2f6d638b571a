import { type Kysely, sql } from "kysely";
import { changesOf } from "../../platform/storage/changes-of.ts";
import { recordColumns, type RowOf } from "../../platform/storage/record-columns.ts";
import type { Customer, CustomerPlan } from "./customer.ts";

/** The plan is JSON, with amounts as text. */
interface CustomerRow extends RowOf<Omit<Customer, "plan">> {
  plan: string | null;
  removed_at_ms: number | null;
}

interface DayRow {
  workspace_id: string;
  customer: string;
  day: number;
  model: string;
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  cost_nano: number | bigint;
  price_nano: number | bigint;
}

/** Rows of customers, their credits and what they used. */
export interface CustomerTables {
  customers: CustomerRow;
  customer_credits: RowOf<CustomerCredit>;
  customer_days: DayRow;
}

/** Credits that were added to a prepaid customer, or taken back. */
export interface CustomerCredit {
  id: string;
  customerId: string;
  workspaceId: string;
  amountNano: bigint;
  note: string | null;
  createdAtMs: number;
}

/** What a customer used of a model on a day, in days since the Unix epoch. */
export interface CustomerDay {
  day: number;
  model: string;
  requests: number;
  promptTokens: number;
  completionTokens: number;
  /** What the workspace paid, and the customer's price of it. */
  costNano: bigint;
  priceNano: bigint;
}

const planText = (plan: CustomerPlan | null): string | null =>
  plan &&
  JSON.stringify({
    ...plan,
    allowanceNano: String(plan.allowanceNano),
    baseNano: String(plan.baseNano),
    capNano: plan.capNano === null ? null : String(plan.capNano),
  });

function planFrom(text: string | null): CustomerPlan | null {
  if (text === null) return null;
  const { allowanceNano, baseNano, capNano, ...plan } = JSON.parse(text) as Omit<
    CustomerPlan,
    "allowanceNano" | "baseNano" | "capNano"
  > & { allowanceNano: string; baseNano: string; capNano: string | null };
  return {
    ...plan,
    allowanceNano: BigInt(allowanceNano),
    baseNano: BigInt(baseNano),
    capNano: capNano === null ? null : BigInt(capNano),
  };
}

const columns = recordColumns<Omit<Customer, "plan">>({
  id: "plain",
  workspaceId: "plain",
  externalId: "plain",
  name: "plain",
  email: "plain",
  creditsNano: "nano",
  suspended: "flag",
  stripeCustomerId: "plain",
  linkVersion: "plain",
  createdAtMs: "plain",
  updatedAtMs: "plain",
});

const fromRow = (row: CustomerRow): Customer => ({
  ...columns.fromRow(row),
  plan: planFrom(row.plan),
});

const rowOf = (customer: Customer): CustomerRow => ({
  ...columns.rowOf(customer),
  plan: planText(customer.plan),
  removed_at_ms: null,
});

const credits = recordColumns<CustomerCredit>({
  id: "plain",
  customerId: "plain",
  workspaceId: "plain",
  amountNano: "nano",
  note: "plain",
  createdAtMs: "plain",
});

/** Returns the columns of a customer that has nothing of its own yet. */
const withoutPlan = <Name>(name: Name) => ({
  name,
  email: null,
  plan: null,
  credits_nano: 0,
  suspended: 0,
  stripe_customer_id: null,
});

/** A page of customers, newest first. */
export interface CustomerListQuery {
  workspaceId: string;
  /** The customer after which the page begins. */
  after?: Pick<Customer, "id" | "createdAtMs"> | undefined;
  limit: number;
}

/** The days of a sum. The end is exclusive. */
interface Days {
  fromDay: number;
  toDay: number;
}

/** Stores customers. What they used stays when they are removed. */
export class CustomerStore {
  constructor(private readonly database: Kysely<CustomerTables>) {}

  async loadAll(): Promise<Customer[]> {
    const rows = await this.database
      .selectFrom("customers")
      .selectAll()
      .where("removed_at_ms", "is", null)
      .execute();
    return rows.map(fromRow);
  }

  /** Returns the customers that were changed since a wall time, and whether each was removed. */
  async changedSince(atMs: number): Promise<{ customer: Customer; isRemoved: boolean }[]> {
    const rows = await this.database
      .selectFrom("customers")
      .selectAll()
      .where("updated_at_ms", ">=", atMs)
      .execute();
    return rows.map((row) => ({ customer: fromRow(row), isRemoved: row.removed_at_ms !== null }));
  }

  async find(id: string): Promise<Customer | undefined> {
    const row = await this.database
      .selectFrom("customers")
      .selectAll()
      .where("id", "=", id)
      .where("removed_at_ms", "is", null)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /** Returns the place of a customer in lists, also where it was removed; undefined where none was. */
  async placeOf(workspaceId: string, id: string): Promise<CustomerListQuery["after"]> {
    const row = await this.database
      .selectFrom("customers")
      .select(["id", "created_at_ms"])
      .where("id", "=", id)
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row && { id: row.id, createdAtMs: Number(row.created_at_ms) };
  }

  async list({ workspaceId, after, limit }: CustomerListQuery): Promise<Customer[]> {
    let query = this.database
      .selectFrom("customers")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .where("removed_at_ms", "is", null);
    if (after !== undefined)
      query = query.where(({ eb, refTuple, tuple }) =>
        eb(refTuple("created_at_ms", "id"), "<", tuple(after.createdAtMs, after.id)),
      );
    const rows = await query
      .orderBy("created_at_ms", "desc")
      .orderBy("id", "desc")
      .limit(limit)
      .execute();
    return rows.map(fromRow);
  }

  /**
   * Writes customers that requests named first. Those that exist stay as they are; those that were
   * removed begin without a plan and credits.
   */
  async insertUnknown(customers: readonly Customer[]): Promise<void> {
    await this.database
      .insertInto("customers")
      .values(customers.map(rowOf))
      .onConflict((conflict) =>
        conflict
          .column("id")
          .doUpdateSet(({ ref }) => ({
            ...withoutPlan(ref("excluded.external_id")),
            link_version: sql`customers.link_version + 1`,
            removed_at_ms: null,
            created_at_ms: ref("excluded.created_at_ms"),
            updated_at_ms: ref("excluded.updated_at_ms"),
          }))
          .where("customers.removed_at_ms", "is not", null),
      )
      .execute();
  }

  /**
   * Writes a new customer, and returns it as it is stored; undefined where there is one. One that
   * was removed begins without credits, and the links of before stay void.
   */
  async insert(customer: Customer): Promise<Customer | undefined> {
    const row = await this.database
      .insertInto("customers")
      .values(rowOf(customer))
      .onConflict((conflict) =>
        conflict
          .column("id")
          .doUpdateSet({
            ...rowOf(customer),
            link_version: sql`customers.link_version + 1`,
          })
          .where("customers.removed_at_ms", "is not", null),
      )
      .returningAll()
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /**
   * Writes the fields in which a customer differs from before, without its credits, which only
   * `addCredit` changes. Returns it as it is stored then; undefined where it was removed.
   */
  async change(before: Customer, after: Customer): Promise<Customer | undefined> {
    const { credits_nano: _, ...changes } = changesOf(rowOf(before), rowOf(after));
    const row = await this.database
      .updateTable("customers")
      .set({ ...changes, updated_at_ms: after.updatedAtMs })
      .where("id", "=", before.id)
      .where("removed_at_ms", "is", null)
      .returningAll()
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /** Removes a customer with its plan and its credits, so that one that follows begins without. */
  async remove(id: string, nowMs: number): Promise<void> {
    await this.database
      .updateTable("customers")
      .set(({ ref }) => ({
        ...withoutPlan(ref("external_id")),
        removed_at_ms: nowMs,
        updated_at_ms: nowMs,
      }))
      .where("id", "=", id)
      .execute();
  }

  /**
   * Adds credits, and returns the customer with them; undefined where it was removed, or where less
   * is there than would be taken back.
   */
  addCredit(credit: CustomerCredit): Promise<Customer | undefined> {
    return this.database.transaction().execute(async (transaction) => {
      const amount = Number(credit.amountNano);
      const row = await transaction
        .updateTable("customers")
        .set({
          credits_nano: sql`credits_nano + ${amount}`,
          updated_at_ms: credit.createdAtMs,
        })
        .where("id", "=", credit.customerId)
        .where("removed_at_ms", "is", null)
        .where(sql<boolean>`credits_nano + ${amount} >= 0`)
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) return undefined;
      await transaction.insertInto("customer_credits").values(credits.rowOf(credit)).execute();
      return fromRow(row);
    });
  }

  /** Returns the newest credits of a customer. */
  async credits(customerId: string, limit: number): Promise<CustomerCredit[]> {
    const rows = await this.database
      .selectFrom("customer_credits")
      .selectAll()
      .where("customer_id", "=", customerId)
      .orderBy("id", "desc")
      .limit(limit)
      .execute();
    return rows.map(credits.fromRow);
  }

  /** Returns what a customer used, by day and model, oldest first. */
  async days(
    { workspaceId, externalId }: Pick<Customer, "workspaceId" | "externalId">,
    { fromDay, toDay }: Days,
  ): Promise<CustomerDay[]> {
    const rows = await this.database
      .selectFrom("customer_days")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .where("customer", "=", externalId)
      .where("day", ">=", fromDay)
      .where("day", "<", toDay)
      .orderBy("day")
      .orderBy("model")
      .execute();
    return rows.map((row) => ({ day: row.day, model: row.model, ...sumsOf(row) }));
  }

  /** Returns what each of some customers used. */
  async sums(
    workspaceId: string,
    { externalIds, fromDay, toDay }: Days & { externalIds: readonly string[] },
  ): Promise<ReadonlyMap<string, CustomerSums>> {
    if (externalIds.length === 0) return new Map();
    const rows = await this.database
      .selectFrom("customer_days")
      .select("customer")
      .select(({ fn }) => [
        fn.sum<number>("requests").as("requests"),
        fn.sum<number>("prompt_tokens").as("prompt_tokens"),
        fn.sum<number>("completion_tokens").as("completion_tokens"),
        fn.sum<number | bigint>("cost_nano").as("cost_nano"),
        fn.sum<number | bigint>("price_nano").as("price_nano"),
      ])
      .where("workspace_id", "=", workspaceId)
      .where("customer", "in", externalIds)
      .where("day", ">=", fromDay)
      .where("day", "<", toDay)
      .groupBy("customer")
      .execute();
    return new Map(rows.map((row) => [row.customer, sumsOf(row)]));
  }
}

/** What a customer used. */
export type CustomerSums = Omit<CustomerDay, "day" | "model">;

/** The sums of a customer that used nothing. */
export const noSums: CustomerSums = {
  requests: 0,
  promptTokens: 0,
  completionTokens: 0,
  costNano: 0n,
  priceNano: 0n,
};

const sumsOf = (
  row: Omit<DayRow, "workspace_id" | "customer" | "day" | "model">,
): CustomerSums => ({
  requests: Number(row.requests),
  promptTokens: Number(row.prompt_tokens),
  completionTokens: Number(row.completion_tokens),
  costNano: BigInt(row.cost_nano),
  priceNano: BigInt(row.price_nano),
});

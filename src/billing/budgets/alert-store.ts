import type { Kysely } from "kysely";
import { newId } from "../../platform/kernel/ids.ts";
import type { DeliveryOutcome } from "../../platform/notify/webhook-sender.ts";
import { recordColumns, type RowOf } from "../../platform/storage/record-columns.ts";
import type { Budget } from "./budget.ts";

/** A way in which an alert is delivered. */
export type Channel = "email" | "webhook";
type DeliveryStatus = "pending" | "delivered" | "failed";

/** Rows of alerts and of their messages. */
export interface AlertTables {
  budget_alerts: RowOf<Alert>;
  budget_deliveries: RowOf<Delivery>;
}

/** A threshold that was reached. */
export interface Alert {
  /** An `alr_` id. */
  id: string;
  budgetId: string;
  periodStartMs: number;
  threshold: number;
  limitNano: bigint;
  spentNano: bigint;
  atMs: number;
}

/** A message to a recipient. */
export interface Delivery {
  /** A `dlv_` id. */
  id: string;
  alertId: string;
  budgetId: string;
  channel: Channel;
  /** The e-mail address or the URL. */
  target: string;
  status: DeliveryStatus;
  attempts: number;
  nextAttemptMs: number | null;
  /** The HTTP status of the last answer. */
  lastStatus: number | null;
  lastError: string | null;
  createdAtMs: number;
  endedAtMs: number | null;
}

const { fromRow: alertOf } = recordColumns<Alert>({
  id: "plain",
  budgetId: "plain",
  periodStartMs: "plain",
  threshold: "plain",
  limitNano: "nano",
  spentNano: "nano",
  atMs: "plain",
});

const { fromRow: deliveryOf } = recordColumns<Delivery>({
  id: "plain",
  alertId: "plain",
  budgetId: "plain",
  channel: "plain",
  target: "plain",
  status: "plain",
  attempts: "plain",
  nextAttemptMs: "plain",
  lastStatus: "plain",
  lastError: "plain",
  createdAtMs: "plain",
  endedAtMs: "plain",
});

/** The thresholds that a budget has reached in a period. */
export interface Reached {
  budget: Budget;
  periodStartMs: number;
  /** The thresholds in ascending order. */
  thresholds: readonly number[];
  spentNano: bigint;
  nowMs: number;
}

/** Stores alerts and their messages. */
export class AlertStore {
  constructor(private readonly database: Kysely<AlertTables>) {}

  /**
   * Records the thresholds that were reached for the first time in a period, with the messages to
   * send; returns how many messages. Several thresholds at once make one alert, for the highest.
   */
  raise({ budget, periodStartMs, thresholds, spentNano, nowMs }: Reached): Promise<number> {
    return this.database.transaction().execute(async (transaction) => {
      const rows = thresholds.map(
        (threshold): RowOf<Alert> => ({
          id: newId("alr", nowMs),
          budget_id: budget.id,
          period_start_ms: periodStartMs,
          threshold,
          limit_nano: Number(budget.limitNano),
          spent_nano: Number(spentNano),
          at_ms: nowMs,
        }),
      );
      const raised = await transaction
        .insertInto("budget_alerts")
        .values(rows)
        .onConflict((conflict) =>
          conflict.columns(["budget_id", "period_start_ms", "threshold", "limit_nano"]).doNothing(),
        )
        .returning(["id", "threshold"])
        .execute();
      const highest = raised.sort((one, other) => other.threshold - one.threshold)[0];
      const deliveries =
        highest === undefined ? [] : deliveriesOf(budget, { alertId: highest.id, nowMs });
      if (deliveries.length > 0)
        await transaction.insertInto("budget_deliveries").values(deliveries).execute();
      return deliveries.length;
    });
  }

  /** Returns alerts of budgets with their messages, newest first. */
  async list(
    budgetIds: readonly string[],
    limit: number,
  ): Promise<{ alert: Alert; deliveries: Delivery[] }[]> {
    if (budgetIds.length === 0) return [];
    const alerts = await this.database
      .selectFrom("budget_alerts")
      .selectAll()
      .where("budget_id", "in", budgetIds)
      .orderBy("at_ms", "desc")
      .orderBy("threshold", "desc")
      .limit(limit)
      .execute();
    if (alerts.length === 0) return [];
    const rows = await this.database
      .selectFrom("budget_deliveries")
      .selectAll()
      .where(
        "alert_id",
        "in",
        alerts.map(({ id }) => id),
      )
      .orderBy("id")
      .execute();
    const byAlert = Map.groupBy(rows.map(deliveryOf), ({ alertId }) => alertId);
    return alerts.map((row) => ({ alert: alertOf(row), deliveries: byAlert.get(row.id) ?? [] }));
  }

  async find(alertId: string): Promise<Alert | undefined> {
    const row = await this.database
      .selectFrom("budget_alerts")
      .selectAll()
      .where("id", "=", alertId)
      .executeTakeFirst();
    return row && alertOf(row);
  }

  /**
   * Leases a message for one attempt, so that no other gateway on the database sends it too.
   * Returns false where another gateway was first.
   */
  async take({ id, nextAttemptMs }: Delivery, untilMs: number): Promise<boolean> {
    const row = await this.database
      .updateTable("budget_deliveries")
      .set({ next_attempt_ms: untilMs })
      .where("id", "=", id)
      .where("status", "=", "pending")
      .where("next_attempt_ms", "=", nextAttemptMs)
      .returning("id")
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Returns the messages that are due, oldest first. */
  async due(nowMs: number, limit: number): Promise<Delivery[]> {
    const rows = await this.database
      .selectFrom("budget_deliveries")
      .selectAll()
      .where("status", "=", "pending")
      .where("next_attempt_ms", "<=", nowMs)
      .orderBy("next_attempt_ms")
      .orderBy("id")
      .limit(limit)
      .execute();
    return rows.map(deliveryOf);
  }

  /** Records the outcome of an attempt. Without a next attempt, the message has failed. */
  async tried(
    delivery: Delivery,
    {
      outcome,
      nowMs,
      nextAttemptMs,
    }: { outcome: DeliveryOutcome; nowMs: number; nextAttemptMs: number | null },
  ): Promise<void> {
    const status: DeliveryStatus = outcome.ok
      ? "delivered"
      : nextAttemptMs === null
        ? "failed"
        : "pending";
    await this.database
      .updateTable("budget_deliveries")
      .set({
        status,
        attempts: delivery.attempts + 1,
        next_attempt_ms: status === "pending" ? nextAttemptMs : null,
        last_status: outcome.status,
        last_error: outcome.ok ? null : outcome.error,
        ended_at_ms: status === "pending" ? null : nowMs,
      })
      .where("id", "=", delivery.id)
      .execute();
  }
}

function deliveriesOf(
  { id: budgetId, emails, webhookUrl }: Budget,
  { alertId, nowMs }: { alertId: string; nowMs: number },
): RowOf<Delivery>[] {
  const targets: [Channel, string][] = emails.map((email) => ["email", email]);
  if (webhookUrl !== null) targets.push(["webhook", webhookUrl]);
  return targets.map(([channel, target]) => ({
    id: newId("dlv", nowMs),
    alert_id: alertId,
    budget_id: budgetId,
    channel,
    target,
    status: "pending",
    attempts: 0,
    next_attempt_ms: nowMs,
    last_status: null,
    last_error: null,
    created_at_ms: nowMs,
    ended_at_ms: null,
  }));
}

import type { Kysely } from "kysely";
import { dayMs, hourMs, minuteMs, type Clock } from "../../platform/kernel/clock.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { recordColumns, type RowOf } from "../../platform/storage/record-columns.ts";
import { periodAt, type Span } from "../budgets/budget.ts";
import { PaymentError } from "../payments/orders.ts";
import type { CustomerBook } from "./customer-book.ts";
import type { CustomerStore } from "./customer-store.ts";
import { billedOf, type Customer, type CustomerPlan } from "./customer.ts";

/** The nano-USD of one unit of a meter: a millionth of a USD. */
const unitNano = 1_000n;
/** Milliseconds between rounds. */
const everyMs = minuteMs;
/** Milliseconds until a refused event, and one without an answer, is sent again. */
const refusedMs = hourMs;
const unansweredMs = minuteMs;
/**
 * How long an event without an answer is sent again. Stripe knows identifiers for at least 24 hours
 * (docs.stripe.com/api/billing/meter-event/create); after that, one more could bill it twice.
 */
const surelyKnownMs = 23 * hourMs;
/** The oldest time that Stripe takes for an event is 35 days; an hour is left for the way there. */
const oldestMs = 35 * dayMs - hourMs;
/** The most customers that are summed, and the most events that are sent, at once. */
const sumsMax = 500;
const sentMax = 500;

interface MeterEventRow extends RowOf<MeterEvent> {
  workspace_id: string;
  period_start_ms: number;
  place: number;
  next_at_ms: number;
}

/** Rows of events for a meter at Stripe. */
export interface MeterEventTables {
  meter_events: MeterEventRow;
}

/** An event for a meter, which Stripe takes once by its identifier. */
export interface MeterEvent {
  /** A `mev_` id, which is the identifier at Stripe. */
  id: string;
  customerId: string;
  stripeCustomerId: string;
  eventName: string;
  /** Millionths of a USD. */
  units: number;
  /** The time that it counts at, within the period that it bills. */
  atMs: number;
  attempts: number;
  endedAtMs: number | null;
  /** Why Stripe did not take it; null where it did, or was not asked yet. */
  error: string | null;
}

const { fromRow } = recordColumns<MeterEvent>({
  id: "plain",
  customerId: "plain",
  stripeCustomerId: "plain",
  eventName: "plain",
  units: "plain",
  atMs: "plain",
  attempts: "plain",
  endedAtMs: "plain",
  error: "plain",
});

/** The work of meter events. */
export interface MeterEventOptions {
  database: Kysely<MeterEventTables>;
  store: Pick<CustomerStore, "sums">;
  book: Pick<CustomerBook, "all" | "planOf">;
  clock: Clock;
  /** The name of the events, by which Stripe finds the meter; undefined reports nothing. */
  eventName: string | undefined;
  /** Waits for the charges that are being written. */
  flush(): Promise<void>;
  /** Sends an event. Rejects with `PaymentError`; resolves where Stripe has it already. */
  send: ((event: MeterEvent) => Promise<void>) | undefined;
  /** Returns whether this gateway, among several on the database, does it; absent: there is one. */
  isLeader?: (() => boolean) | undefined;
  /** Called after each run, with its failure where it has one. */
  onRun(error: Error | undefined): void;
}

/**
 * Reports what postpaid plans bill to a meter at Stripe. Each event is a row before it is sent, and
 * is sent under the id of the row until Stripe has it, so that it counts once under any crash.
 */
export class MeterEvents {
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> | undefined;

  constructor(private readonly options: MeterEventOptions) {}

  start(): void {
    const { eventName, send, isLeader, onRun } = this.options;
    if (eventName === undefined || send === undefined) return;
    this.timer = setInterval(() => {
      if (isLeader?.() === false) return;
      this.run().then(() => onRun(undefined), onRun);
    }, everyMs);
    this.timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.running?.catch(() => undefined);
  }

  /** Makes the events that are due and sends them; one run at a time. */
  run(): Promise<void> {
    this.running ??= this.round().finally(() => (this.running = undefined));
    return this.running;
  }

  /** Returns the newest events of a customer. */
  async list(customerId: string, limit: number): Promise<MeterEvent[]> {
    const rows = await this.options.database
      .selectFrom("meter_events")
      .selectAll()
      .where("customer_id", "=", customerId)
      .orderBy("id", "desc")
      .limit(limit)
      .execute();
    return rows.map(fromRow);
  }

  private async round(): Promise<void> {
    const { book, clock, flush } = this.options;
    await flush();
    const nowMs = clock.nowMs();
    const bySpan = new Map<string, { span: Span; billed: Billed[] }>();
    for (const customer of book.all()) {
      const plan = book.planOf(customer);
      const { stripeCustomerId } = customer;
      if (plan?.type !== "postpaid" || stripeCustomerId === null) continue;
      for (const span of openSpans(plan, nowMs)) {
        const name = `${customer.workspaceId} ${span.startMs} ${span.endMs}`;
        const group = bySpan.get(name) ?? { span, billed: [] };
        group.billed.push({ customer: { ...customer, stripeCustomerId }, plan });
        bySpan.set(name, group);
      }
    }
    for (const { span, billed } of bySpan.values())
      for (let at = 0; at < billed.length; at += sumsMax)
        await this.make(span, billed.slice(at, at + sumsMax));
    await this.sendDue();
  }

  /** Makes an event for each customer who is billed more for a period than its events say. */
  private async make(span: Span, billed: readonly Billed[]): Promise<void> {
    const { database, store, clock, eventName } = this.options;
    const workspaceId = billed[0]?.customer.workspaceId;
    if (workspaceId === undefined || eventName === undefined) return;
    const sums = await store.sums(workspaceId, {
      externalIds: billed.map(({ customer }) => customer.externalId),
      fromDay: span.startMs / dayMs,
      toDay: span.endMs / dayMs,
    });
    const made = await this.madeFor(
      span,
      billed.map(({ customer }) => customer.id),
    );
    const nowMs = clock.nowMs();
    const rows = billed.flatMap(({ customer, plan }): MeterEventRow[] => {
      const priceNano = sums.get(customer.externalId)?.priceNano ?? 0n;
      const before = made.get(customer.id) ?? { units: 0, count: 0 };
      const units = Number(billedOf(plan, priceNano) / unitNano) - before.units;
      if (units <= 0) return [];
      return [
        {
          id: newId("mev", nowMs),
          workspace_id: workspaceId,
          customer_id: customer.id,
          stripe_customer_id: customer.stripeCustomerId,
          event_name: eventName,
          period_start_ms: span.startMs,
          place: before.count,
          units,
          at_ms: Math.min(nowMs, span.endMs - 1000),
          attempts: 0,
          next_at_ms: nowMs,
          ended_at_ms: null,
          error: null,
        },
      ];
    });
    if (rows.length === 0) return;
    // Another gateway may have made the same event: the first one counts.
    await database
      .insertInto("meter_events")
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(["customer_id", "period_start_ms", "place"]).doNothing(),
      )
      .execute();
  }

  private async madeFor(
    { startMs }: Span,
    customerIds: readonly string[],
  ): Promise<ReadonlyMap<string, { units: number; count: number }>> {
    const rows = await this.options.database
      .selectFrom("meter_events")
      .select("customer_id")
      .select(({ fn }) => [fn.sum<number>("units").as("units"), fn.countAll<number>().as("count")])
      .where("customer_id", "in", customerIds)
      .where("period_start_ms", "=", startMs)
      .groupBy("customer_id")
      .execute();
    return new Map(
      rows.map((row) => [row.customer_id, { units: Number(row.units), count: Number(row.count) }]),
    );
  }

  private async sendDue(): Promise<void> {
    const { database, clock } = this.options;
    const rows = await database
      .selectFrom("meter_events")
      .selectAll()
      .where("ended_at_ms", "is", null)
      .where("next_at_ms", "<=", clock.nowMs())
      .orderBy("next_at_ms")
      .limit(sentMax)
      .execute();
    for (const row of rows) await this.sendOne(fromRow(row));
  }

  private async sendOne(event: MeterEvent): Promise<void> {
    const { send, clock } = this.options;
    if (send === undefined) return;
    const nowMs = clock.nowMs();
    const ageMs = nowMs - madeAtMs(event.id);
    const wasRefused = event.error !== null && event.error !== unanswered;
    if (event.attempts > 0 && !wasRefused && ageMs > surelyKnownMs)
      return this.end(event, "It is not known whether Stripe has this event. Compare its meter.");
    if (nowMs - event.atMs > oldestMs)
      return this.end(event, event.error ?? "It is older than Stripe takes events.");
    // A gateway that ends now has tried, as far as the next one can know.
    await this.note(event, { attempts: event.attempts + 1, next_at_ms: nowMs + unansweredMs });
    try {
      await send(event);
      await this.end(event, null);
    } catch (error) {
      if (!(error instanceof PaymentError)) throw error;
      const isRefusal = error.kind === "refused";
      await this.note(event, {
        error: isRefusal ? `Stripe refused it: ${error.message}` : unanswered,
        next_at_ms: nowMs + (isRefusal ? refusedMs : unansweredMs),
      });
    }
  }

  private end(event: MeterEvent, error: string | null): Promise<void> {
    return this.note(event, { ended_at_ms: this.options.clock.nowMs(), error });
  }

  private async note({ id }: MeterEvent, changes: Partial<MeterEventRow>): Promise<void> {
    await this.options.database
      .updateTable("meter_events")
      .set(changes)
      .where("id", "=", id)
      .execute();
  }
}

/** A customer whose use is reported, with its plan. */
interface Billed {
  customer: Customer & { stripeCustomerId: string };
  plan: CustomerPlan;
}

const unanswered = "Stripe has not answered yet";

/** Returns when an event was made, which its id begins with. */
const madeAtMs = (id: string): number => Number.parseInt(id.slice("mev_".length, 16), 16);

/** Returns the present period of a plan, and the one before, which late charges may still change. */
function openSpans({ period }: CustomerPlan, nowMs: number): Span[] {
  const present = periodAt(period, nowMs);
  return [periodAt(period, present.startMs - 1), present];
}

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { sql } from "kysely";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import {
  CrashedError,
  FaultyCommits,
  type CommitFate,
} from "../../../test/support/faulty-commits.ts";
import { putMigratedSqlite } from "../../../test/support/migrated-sqlite.ts";
import { isNightly } from "../../../test/support/nightly.ts";
import { migratedDatabase } from "../../../test/support/postgres.ts";
import { startFakeStripe } from "../../../test/support/stripe/fake-stripe.ts";
import { paymentSettings } from "../../../test/support/stripe/paying-gateway.ts";
import { PaymentModel } from "../../../test/support/stripe/payment-model.ts";
import type { StripeEvent } from "../../../test/support/stripe/stripe-world.ts";
import type { CommitUnit } from "../../platform/storage/commit-queue.ts";
import { migrations } from "../../platform/storage/migrations/index.ts";
import { openStorage } from "../../platform/storage/open-storage.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import { AccountBook } from "../ledger/book/account-book.ts";
import { LedgerStore, type LedgerTables } from "../ledger/ledger-store.ts";
import { Ledger } from "../ledger/ledger.ts";
import { openCredits } from "../credits/open-credits.ts";
import { ledgerAdds, transferInsert } from "../ledger/transfer.ts";
import { auditInsert, auditOutcomeInsert } from "../../access/audit/audit-log.ts";
import { quoteOf } from "./cents.ts";
import type { Order } from "./orders.ts";
import { paymentInserts } from "./payment-store.ts";
import { openPayments, type Payments } from "./open-payments.ts";
import type { PaymentTables } from "./payment-tables.ts";

type Tables = PaymentTables & LedgerTables;

const historiesPerDatabase = 25;
const stripe = startFakeStripe();
afterAll(() => stripe.stop());

const fate = fc.constantFrom<CommitFate>(
  "works",
  "works",
  "works",
  "refused",
  "crash-before",
  "crash-after",
);
const pick = fc.nat({ max: 1_000 });
const action = fc.record({
  kind: fc.constantFrom(
    "order",
    "order",
    "pay",
    "pay",
    "refund",
    "dispute",
    "drop",
    "deliver",
    "deliver",
    "deliver",
    "spend",
    "follow",
    "crash",
  ),
  pick,
  cents: fc.integer({ min: 500, max: 9_999 }),
  fate,
  /** Which commit of a delivery meets its fate. */
  after: fc.nat({ max: 3 }),
});
type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

/** A database that fails some commits later. */
class LaterFaults extends FaultyCommits {
  after = 0;
  fate: CommitFate = "works";

  override commit(unit: CommitUnit): Promise<void> {
    if (this.after-- === 0) this.next = this.fate;
    return super.commit(unit);
  }
}

/** One history: payments on a database with a simulated Stripe, and the model beside them. */
class History {
  readonly model = new PaymentModel();
  private readonly clock = new FakeClock();
  private readonly commits: LaterFaults;
  private readonly events: StripeEvent[] = [];
  private readonly unpaid: { order: Order; sessionId: string }[] = [];
  private readonly paid: {
    orderId: string;
    chargeCents: number;
    paymentId: string;
    reversedCents: number;
  }[] = [];
  private readonly reversals: { id: string; refund: boolean }[] = [];
  private ledger!: Ledger;
  private payments!: Payments;
  private readonly storage: Storage<Tables>;
  readonly workspaceId: string;

  constructor(storage: Storage<Tables>, workspaceId: string) {
    this.storage = storage;
    this.workspaceId = workspaceId;
    this.commits = new LaterFaults(storage.commits);
  }

  /** What a new process does. */
  async start(): Promise<void> {
    const {
      clock,
      commits,
      storage: { database },
    } = this;
    const book = new AccountBook();
    await new LedgerStore({ database: withTables(database), commits }).loadInto(book, {
      nowMs: clock.nowMs(),
      parents: new Map(),
    });
    this.ledger = new Ledger({ book, commits, clock });
    const fail = (error: unknown): never => {
      throw error;
    };
    const shared = { commits, clock, ledger: this.ledger, onError: fail };
    const { withdrawals } = openCredits({
      ...shared,
      database: withTables(database),
      plans: {},
      workspaces: () => [],
    });
    const opened = openPayments({
      ...shared,
      database: withTables(database),
      withdrawals,
      settings: paymentSettings(stripe.url),
      buyerOf: () => undefined,
      onRefused: (event, outcome) => fail(new Error(`${event.type}: ${outcome}`)),
      onReconciled: () => undefined,
    });
    if (opened === undefined) throw new Error("payments are off");
    this.payments = opened;
  }

  async act({ kind, pick: at, cents, fate: met, after }: Action): Promise<void> {
    const { world } = stripe;
    const paid = this.paid[at % Math.max(1, this.paid.length)];
    const left = paid === undefined ? 0 : paid.chargeCents - paid.reversedCents;
    if (kind === "order") await this.order(cents);
    else if (kind === "pay") this.pay(at);
    else if (kind === "refund" && paid !== undefined && left > 0) {
      const amount = Math.min(cents, left);
      paid.reversedCents += amount;
      const events = world.refund(paid.paymentId, amount);
      this.reversal(events, { orderId: paid.orderId, cents: amount, refund: true });
    } else if (kind === "dispute" && paid !== undefined) {
      const events = [world.dispute(paid.paymentId, { amount: paid.chargeCents })];
      this.reversal(events, { orderId: paid.orderId, cents: paid.chargeCents, refund: false });
    } else if (kind === "drop") this.drop(at);
    else if (kind === "deliver")
      await this.deliver(this.events[at % Math.max(1, this.events.length)], { fate: met, after });
    else if (kind === "spend") await this.spend(BigInt(cents) * 10_000_000n);
    else if (kind === "follow") await this.payments.follower.run();
    else if (kind === "crash") await this.start();
    await this.expectBook();
  }

  /** Everything is reported in some order, and then nothing is left to do. */
  async finish(order: readonly number[]): Promise<void> {
    const left = [...this.events, ...this.events];
    for (const at of order) {
      const [event] = left.length === 0 ? [] : left.splice(at % left.length, 1);
      await this.deliver(event, { fate: "works", after: 0 });
    }
    for (const event of left) await this.deliver(event, { fate: "works", after: 0 });
    await this.payments.follower.run();
    await this.expectModel();
  }

  async expectModel(): Promise<void> {
    expect(await this.expectBook()).toBe(this.model.balanceNano);
    await this.expectDocuments();
  }

  private async order(creditCents: number): Promise<void> {
    const { model, payments, workspaceId, clock } = this;
    const quote = quoteOf(creditCents, payments.settings.fee);
    const id = stripe.world.id("top");
    const order: Order = {
      ...quote,
      id,
      workspaceId,
      live: false,
      kind: "checkout",
      state: "open",
      failure: null,
      createdAtMs: clock.nowMs(),
      createdBy: "usr",
      buyer: { name: "a" },
      currency: "usd",
      customerId: `cus_${workspaceId}`,
      paymentMethodId: null,
      sessionId: `cs_${id}`,
      paymentIntentId: null,
      month: null,
    };
    await payments.orders.insert(order);
    stripe.world.sessions.set(`cs_${id}`, {
      id: `cs_${id}`,
      client_reference_id: id,
      customer: order.customerId,
      amount_total: quote.chargeCents,
      currency: "usd",
      metadata: { switchyard_order: id },
      payment_status: "unpaid",
    });
    model.order(id, quote);
    this.unpaid.push({ order, sessionId: `cs_${id}` });
  }

  private pay(at: number): void {
    const [unpaid] = this.unpaid.length === 0 ? [] : this.unpaid.splice(at % this.unpaid.length, 1);
    if (unpaid === undefined) return;
    const {
      order: { id: orderId, chargeCents },
      sessionId,
    } = unpaid;
    const events = stripe.world.pay(sessionId);
    this.events.push(...events);
    this.paid.push({
      orderId,
      chargeCents,
      paymentId: events[0]!.data.object.id,
      reversedCents: 0,
    });
    this.model.pay(orderId);
  }

  private reversal(
    events: StripeEvent[],
    reversal: { orderId: string; cents: number; refund: boolean },
  ): void {
    const id = events[0]!.data.object.id;
    this.events.push(...events);
    this.reversals.push({ id, refund: reversal.refund });
    this.model.reversal(id, reversal);
  }

  private drop(at: number): void {
    const [reversal] =
      this.reversals.length === 0 ? [] : this.reversals.splice(at % this.reversals.length, 1);
    if (reversal === undefined) return;
    this.events.push(
      reversal.refund
        ? stripe.world.failRefund(reversal.id)
        : stripe.world.moveDispute(reversal.id, "won"),
    );
    this.model.drop(reversal.id);
  }

  /** A delivery may fail anywhere; then it is as if Stripe had not been answered. */
  private async deliver(
    event: StripeEvent | undefined,
    { fate: met, after }: { fate: CommitFate; after: number },
  ): Promise<void> {
    if (event === undefined) return;
    Object.assign(this.commits, { after, fate: met, next: "works" });
    const { id, type, created, data, livemode: live } = event;
    const received = this.payments.events.receive({
      id,
      type,
      createdAtMs: created * 1000,
      live,
      connectedAccount: undefined,
      object: data.object,
    });
    const failure: unknown = await received.then(
      () => undefined,
      (error: unknown) => error,
    );
    Object.assign(this.commits, { after: -1, next: "works" });
    if (failure === undefined) return;
    if (met === "works") throw failure;
    if (failure instanceof CrashedError) await this.start();
  }

  private async spend(amountNano: bigint): Promise<void> {
    const holdId = crypto.randomUUID();
    const { workspaceId } = this;
    const held = await this.ledger.reserve({
      holdId,
      workspaceId,
      keyId: `key_${workspaceId}`,
      keyLimit: null,
      ceilingNano: amountNano,
    });
    if (!held.ok) return;
    const posted = await this.ledger.post({
      holdId,
      amountNano,
      alongside: () => ({ inserts: [], adds: [] }),
    }).durable;
    if (posted.ok) this.model.spentNano += posted.chargedNano;
  }

  /** The book and the database agree, and nothing is below zero. */
  private async expectBook(): Promise<bigint> {
    const { topupNano, heldNano } = this.ledger.book.workspace(this.workspaceId);
    const row = await this.storage.database
      .selectFrom("ledger_accounts")
      .select("balance_nano")
      .where("id", "=", `${this.workspaceId}:topup`)
      .executeTakeFirst();
    expect([topupNano, heldNano]).toEqual([BigInt(row?.balance_nano ?? 0), 0n]);
    expect(topupNano >= 0n).toBe(true);
    return topupNano;
  }

  private async expectDocuments(): Promise<void> {
    const documents = await this.payments.store.documents({
      workspaceId: this.workspaceId,
      limit: 1_000,
    });
    const invoiced = documents
      .filter(({ reference }) => reference === "")
      .map(({ orderId }) => orderId);
    expect(invoiced.sort()).toEqual(this.model.paidOrders.sort());
    for (const orderId of invoiced) {
      const notes = documents.filter((each) => each.orderId === orderId && each.reference !== "");
      expect(
        notes.reduce((sum, { creditCents, feeCents }) => sum + creditCents + feeCents, 0),
      ).toBe(this.model.refundedCents(orderId));
    }
  }
}

/** Every series counts from one without a gap, and all accounts together are zero. */
async function expectWhole({ database }: Storage<Tables>): Promise<void> {
  const { rows } = await sql<{ series: string; most: number; count: number | bigint }>`
    select series, max(number) as most, count(*) as count from payment_documents group by series`.execute(
    database,
  );
  for (const { most, count } of rows) expect(Number(most)).toBe(Number(count));
  const sums = await sql<{
    sum: number | string | null;
  }>`select sum(balance_nano) as sum from ${sql.table("ledger_accounts")}`.execute(database);
  expect(Number(sums.rows[0]?.sum ?? 0)).toBe(0);
}

const openPaymentStorage = (url: string): Promise<Storage<Tables>> =>
  openStorage<Tables>({
    url,
    durability: "process",
    migrations,
    commitStatements: {
      inserts: [transferInsert, auditInsert, auditOutcomeInsert, ...paymentInserts],
      adds: ledgerAdds,
    },
  });

async function runHistories(count: number, freshUrl: () => Promise<string>): Promise<void> {
  let storage: Storage<Tables> | undefined;
  let run = 0;
  const actions = fc.array(action, { minLength: 8, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(actions, fc.array(pick, { maxLength: 60 }), async (list, order) => {
      if (storage === undefined || run % historiesPerDatabase === 0) {
        await storage?.close();
        storage = await openPaymentStorage(await freshUrl());
      }
      const history = new History(storage, `ws_${run++}`);
      await history.start();
      for (const each of list) await history.act(each);
      await history.finish(order);
      await expectWhole(storage);
    }),
    { numRuns: count },
  );
  await storage?.close();
}

/** Histories on SQLite; nightly more of them. */
const histories = isNightly ? 300 : 100;

test(`${histories} histories of payments with reordered, repeated and interrupted events match the model`, async () => {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-payments-"));
  await runHistories(histories, () =>
    putMigratedSqlite(mkdtempSync(join(directory, "test-"))),
  ).finally(() => rmSync(directory, { recursive: true, force: true }));
}, 240_000);

test("10 histories match the model on Postgres", () => runHistories(10, migratedDatabase), 240_000);

test("the next round completes the steps of a refused commit without another event", async () => {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-payments-"));
  const storage = await openPaymentStorage(`sqlite:${join(directory, "test.db")}`);
  const history = new History(storage, "ws_1");
  await history.start();
  const step = (kind: Action["kind"], more: Partial<Action> = {}): Promise<void> =>
    history.act({ kind, pick: 0, cents: 1_000, fate: "works", after: 0, ...more });
  for (const kind of ["follow", "order", "pay", "refund"] as const) await step(kind);
  // The refund comes before its payment; of what the payment commits, the second part is refused.
  await step("deliver", { pick: 2 });
  await step("deliver", { fate: "refused", after: 1 });
  await step("deliver");
  await step("follow");
  await history.expectModel();
  await storage.close();
  rmSync(directory, { recursive: true, force: true });
});

import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { Withdrawals } from "../credits/withdrawals.ts";
import { nanoFromCents, type Quote } from "./cents.ts";
import { seriesOf, creditTransferId, type IssuedDocument, type Order } from "./orders.ts";
import {
  auditRows,
  documentRow,
  movementInsert,
  type Insert,
  type KnownReversal,
  type OrderFacts,
  type PaymentBooks,
} from "./payment-store.ts";

/** Returns whether a reversal takes money. */
const takesMoney = ({ states }: Pick<KnownReversal, "states">): boolean =>
  !states.includes("dropped");

/**
 * Returns the part of a charge that was reversed: never more than the charge, although its refunds
 * and disputes may add up to more.
 */
function reversedCents(
  reversals: readonly KnownReversal[],
  { chargeCents }: Pick<Quote, "chargeCents">,
): number {
  const sum = reversals
    .filter(takesMoney)
    .reduce((cents, { amountCents }) => cents + amountCents, 0);
  return Math.min(sum, chargeCents);
}

/**
 * Returns the credits in this part of a charge, without the fee: in proportion, rounded half up to
 * a cent.
 */
const creditPartOf = (
  cents: number,
  { creditCents, chargeCents }: Pick<Quote, "creditCents" | "chargeCents">,
): number =>
  Number(
    (2n * BigInt(cents) * BigInt(creditCents) + BigInt(chargeCents)) / (2n * BigInt(chargeCents)),
  );

/**
 * Makes balances and documents follow the reversals of payments. It computes from all reversals
 * what should have been taken, and moves the difference to what was taken. The result is therefore
 * independent of their order, repetitions and crashes; it is repeated until nothing is left to do.
 */
export class ReversalFollower {
  private readonly books: PaymentBooks;
  private readonly commits: CommitQueue;
  private readonly withdrawals: Withdrawals;
  /** Workspaces whose balance is behind their reversals; undefined until they were looked up. */
  private owing: Set<string> | undefined;

  constructor(options: { books: PaymentBooks; commits: CommitQueue; withdrawals: Withdrawals }) {
    this.books = options.books;
    this.commits = options.commits;
    this.withdrawals = options.withdrawals;
  }

  /**
   * Takes from a workspace what its reversals require, as far as its credits suffice. Returns what
   * it still owes.
   */
  async follow(workspaceId: string): Promise<bigint> {
    // Where the database refuses, the workspace stays in the set.
    this.owing?.add(workspaceId);
    const owedNano = await this.books.mutex.run("books", async () => {
      const due: Due[] = [];
      for (const facts of await this.books.store.factsOf(workspaceId)) {
        const order = await this.books.orders.find(facts.orderId);
        if (order === undefined) continue;
        for (const document of dueCreditNotes(order, facts)) await this.issue(order, document);
        due.push({ order, facts, dueNano: dueOf(order, facts) });
      }
      for (const each of due) if (each.dueNano < 0n) await this.giveBack(each);
      let leftNano = 0n;
      for (const each of due) if (each.dueNano > 0n) leftNano += await this.take(each);
      return leftNano;
    });
    if (owedNano === 0n) this.owing?.delete(workspaceId);
    return owedNano;
  }

  /** Retries what could not be taken and, on its first run, what a crash may have cut off. */
  async run(): Promise<void> {
    this.owing ??= new Set(await this.books.store.workspacesWithReversals());
    for (const workspaceId of [...this.owing]) await this.follow(workspaceId);
  }

  /** Takes as much as is present and not held; returns what is missing. */
  private async take({ order, facts, dueNano }: Due): Promise<bigint> {
    const { workspaceId, id: reference } = order;
    const id = movementId(order, facts);
    const takenNano = await this.withdrawals.refund({
      id,
      workspaceId,
      amountNano: dueNano,
      reference,
      alongside: (taken) =>
        movementRows(order, { ...taken, id, step: stepOf(facts), action: "credits taken back" }),
    });
    return dueNano - takenNano;
  }

  private giveBack({ order, facts, dueNano }: Due): Promise<void> {
    const { workspaceId, id: reference } = order;
    const id = movementId(order, facts);
    return this.books.ledger.credit({
      id,
      workspaceId,
      bucket: "topup",
      kind: "topup",
      amountNano: -dueNano,
      reference,
      alongside: (atMs) =>
        movementRows(order, {
          takenNano: dueNano,
          atMs,
          id,
          step: stepOf(facts),
          action: "credits given back",
        }),
    });
  }

  private async issue(order: Order, part: CreditNote): Promise<void> {
    const { store, settings, clock } = this.books;
    const series = seriesOf("credit_note", order);
    const { id: orderId, workspaceId, currency, buyer } = order;
    const document = documentRow({
      ...part,
      series,
      number: await store.nextNumber(series),
      orderId,
      workspaceId,
      issuedAtMs: clock.nowMs(),
      currency,
      seller: settings.seller,
      buyer,
    });
    await this.commits.commit({ inserts: [document], adds: [] });
  }
}

/** The amount to take for an order; negative where it is to be given back. */
interface Due {
  order: Order;
  facts: OrderFacts;
  dueNano: bigint;
}

const dueOf = (order: Order, { reversals, takenNano }: OrderFacts): bigint =>
  nanoFromCents(creditPartOf(reversedCents(reversals, order), order)) - takenNano;

const stepOf = ({ movementCount }: OrderFacts): number => movementCount + 1;

const movementId = (order: Order, facts: OrderFacts): string =>
  `${creditTransferId(order.id)}_${stepOf(facts)}`;

/**
 * Returns the rows that are committed with a movement. Where two processes move the same step, one
 * of them is refused.
 */
function movementRows(
  { id: orderId, workspaceId }: Order,
  {
    id,
    step,
    takenNano,
    atMs,
    action,
  }: { id: string; step: number; takenNano: bigint; atMs: number; action: string },
): Insert[] {
  return [
    {
      statement: movementInsert,
      values: [orderId, step, workspaceId, id, Number(takenNano), atMs],
    },
    ...auditRows({ workspaceId, action, target: `${orderId} ${id}` }, atMs),
  ];
}

type CreditNote = Pick<IssuedDocument, "reference" | "creditCents" | "feeCents">;

/** Returns the reference of the note that cancels a credit note whose refund failed. */
const takenBack = (refundId: string): string => `${refundId} failed`;

/**
 * Returns the credit notes still to be issued: one for each refund, and a negative one for each
 * that failed after it had one.
 */
function dueCreditNotes(order: Order, { reversals, creditNotes }: OrderFacts): CreditNote[] {
  let refunded = creditNotes.reduce(
    (cents, { creditCents, feeCents }) => cents + creditCents + feeCents,
    0,
  );
  return reversals
    .filter(({ kind }) => kind === "refund")
    .flatMap((reversal) => {
      const noted = creditNotes.find(({ reference }) => reference === reversal.id);
      if (takesMoney(reversal)) {
        if (noted !== undefined) return [];
        const [from, to] = [refunded, Math.min(refunded + reversal.amountCents, order.chargeCents)];
        refunded = to;
        const creditCents = creditPartOf(to, order) - creditPartOf(from, order);
        return [{ reference: reversal.id, creditCents, feeCents: to - from - creditCents }];
      }
      const reference = takenBack(reversal.id);
      if (noted === undefined || creditNotes.some((each) => each.reference === reference))
        return [];
      refunded -= noted.creditCents + noted.feeCents;
      return [{ reference, creditCents: -noted.creditCents, feeCents: -noted.feeCents }];
    });
}

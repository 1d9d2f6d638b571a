import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { Withdrawals } from "../credits/open-credits.ts";
import { nanoFromCents, type Quote } from "./cents.ts";
import {
  documentValues,
  seriesOf,
  creditTransferId,
  type IssuedDocument,
  type Order,
} from "./orders.ts";
import {
  auditRows,
  documentInsert,
  movementInsert,
  type Insert,
  type OrderFacts,
  type PaymentBooks,
} from "./payment-store.ts";

/** Why money of a payment goes back to its payer. */
export type ClaimKind = "refund" | "dispute";

/**
 * What a claim is: it takes the money (`standing`, or `lost` once a dispute is decided), or it does
 * not (`dropped`: a refund that failed, a dispute that was won). A claim is the strongest that was
 * ever told of it, in any order.
 */
export type ClaimState = "standing" | "lost" | "dropped";

/** A refund or a dispute of a payment, in one of the states that it has had. */
export interface Claim {
  /** The provider's id of it. */
  id: string;
  kind: ClaimKind;
  state: ClaimState;
  paymentIntentId: string;
  amountCents: number;
}

const standing = (...statuses: string[]): [string, ClaimState][] =>
  statuses.map((status) => [status, "standing"]);
const dropped = (...statuses: string[]): [string, ClaimState][] =>
  statuses.map((status) => [status, "dropped"]);

/**
 * Statuses that move money: docs.stripe.com/api/refunds/object and
 * docs.stripe.com/api/disputes/object. Inquiries (`warning_*`) do not.
 */
const states: Readonly<Record<ClaimKind, ReadonlyMap<string, ClaimState>>> = {
  refund: new Map([
    ...standing("pending", "requires_action", "succeeded"),
    ...dropped("failed", "canceled"),
  ]),
  dispute: new Map([
    ...standing("needs_response", "under_review", "appeal_needs_response", "appeal_under_review"),
    ["lost", "lost"],
    ...dropped("won", "prevented", "charge_refunded"),
  ]),
};

/** The state that a status means; undefined for one that moves no money. */
export const claimStateOf = (kind: ClaimKind, status: string): ClaimState | undefined =>
  states[kind].get(status);

/** A claim with every report of it. */
export interface KnownClaim {
  id: string;
  kind: ClaimKind;
  amountCents: number;
  states: readonly ClaimState[];
}

/** Whether a claim takes money. */
const takesMoney = ({ states: told }: Pick<KnownClaim, "states">): boolean =>
  !told.includes("dropped");

/**
 * The part of a charge that was claimed back; never more than the charge, although its refunds and
 * disputes may add up to more.
 */
function claimedCents(
  claims: readonly KnownClaim[],
  { chargeCents }: Pick<Quote, "chargeCents">,
): number {
  const sum = claims.filter(takesMoney).reduce((cents, { amountCents }) => cents + amountCents, 0);
  return Math.min(sum, chargeCents);
}

/**
 * The credits among so many cents of a charge, the rest being fee: in proportion, half a cent
 * counting as a whole one.
 */
const creditPartOf = (
  cents: number,
  { creditCents, chargeCents }: Pick<Quote, "creditCents" | "chargeCents">,
): number =>
  Number(
    (2n * BigInt(cents) * BigInt(creditCents) + BigInt(chargeCents)) / (2n * BigInt(chargeCents)),
  );

/**
 * Has balances and documents follow what was claimed back of payments: what should have been taken
 * is computed from all claims, and the difference to what was taken is moved. So it does not matter
 * in which order claims come, how often, or where a crash cut this off; it is done again until
 * nothing is left to do.
 */
export class ClaimFollower {
  private readonly books: PaymentBooks;
  private readonly commits: CommitQueue;
  private readonly withdrawals: Withdrawals;
  /** Workspaces that are not brought up to their claims; undefined until they were looked for. */
  private owing: Set<string> | undefined;

  constructor(options: { books: PaymentBooks; commits: CommitQueue; withdrawals: Withdrawals }) {
    this.books = options.books;
    this.commits = options.commits;
    this.withdrawals = options.withdrawals;
  }

  /**
   * Brings a workspace up to its claims, as far as its credits bear it. Tells what it still owes.
   */
  async follow(workspaceId: string): Promise<bigint> {
    // Where the database refuses, it stays here.
    this.owing?.add(workspaceId);
    const owedNano = await this.books.turns.run("books", async () => {
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

  /** Tries again what could not be taken, and, the first time, what a crash may have cut off. */
  async run(): Promise<void> {
    this.owing ??= new Set(await this.books.store.claimedWorkspaces());
    for (const workspaceId of [...this.owing]) await this.follow(workspaceId);
  }

  /** Takes as much as is there and free; tells what was not. */
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
    const values = documentValues({
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
    await this.commits.commit({ inserts: [{ statement: documentInsert, values }], adds: [] });
  }
}

/** What is to be taken for an order; below zero what is to be given back. */
interface Due {
  order: Order;
  facts: OrderFacts;
  dueNano: bigint;
}

const dueOf = (order: Order, { claims, takenNano }: OrderFacts): bigint =>
  nanoFromCents(creditPartOf(claimedCents(claims, order), order)) - takenNano;

const stepOf = ({ movementCount }: OrderFacts): number => movementCount + 1;

const movementId = (order: Order, facts: OrderFacts): string =>
  `${creditTransferId(order.id)}_${stepOf(facts)}`;

/**
 * What stands together with a movement. Two processes that move the same step have one of them
 * refused.
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

/** The reference of the note that takes a credit note back, since its refund failed. */
const takenBack = (refundId: string): string => `${refundId} failed`;

/**
 * What is still to be issued: a note for each refund, and one below zero for each that failed after
 * it had one.
 */
function dueCreditNotes(order: Order, { claims, creditNotes }: OrderFacts): CreditNote[] {
  let refunded = creditNotes.reduce(
    (cents, { creditCents, feeCents }) => cents + creditCents + feeCents,
    0,
  );
  return claims
    .filter(({ kind }) => kind === "refund")
    .flatMap((claim) => {
      const noted = creditNotes.find(({ reference }) => reference === claim.id);
      if (takesMoney(claim)) {
        if (noted !== undefined) return [];
        const [from, to] = [refunded, Math.min(refunded + claim.amountCents, order.chargeCents)];
        refunded = to;
        const creditCents = creditPartOf(to, order) - creditPartOf(from, order);
        return [{ reference: claim.id, creditCents, feeCents: to - from - creditCents }];
      }
      const reference = takenBack(claim.id);
      if (noted === undefined || creditNotes.some((each) => each.reference === reference))
        return [];
      refunded -= noted.creditCents + noted.feeCents;
      return [{ reference, creditCents: -noted.creditCents, feeCents: -noted.feeCents }];
    });
}

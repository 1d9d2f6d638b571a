import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { Withdrawals } from "../ledger/withdrawals.ts";
import { nanoFromCents } from "./cents.ts";
import { claimedCents, creditPartOf, takesMoney } from "./claim.ts";
import { documentValues, seriesOf, type IssuedDocument } from "./document.ts";
import type { Order } from "./order.ts";
import type { PaymentBooks } from "./payment-books.ts";
import { auditRows, documentInsert, movementInsert, type Insert } from "./payment-rows.ts";
import type { OrderFacts } from "./payment-store.ts";

/**
 * Has balances and documents follow what was claimed back of payments: what should have been taken is computed from
 * all claims, and the difference to what was taken is moved. So it does not matter in which order claims come, how
 * often, or where a crash cut this off; it is done again until nothing is left to do.
 */
export class ClaimFollower {
  private readonly books: PaymentBooks;
  private readonly commits: CommitQueue;
  private readonly withdrawals: Withdrawals;
  /** Workspaces that had not the credits that are to be taken; undefined until they were looked for. */
  private owing: Set<string> | undefined;

  constructor(options: { books: PaymentBooks; commits: CommitQueue; withdrawals: Withdrawals }) {
    this.books = options.books;
    this.commits = options.commits;
    this.withdrawals = options.withdrawals;
  }

  /** Brings a workspace up to its claims, as far as its credits bear it. Tells what it still owes. */
  async follow(workspaceId: string): Promise<bigint> {
    const owedNano = await this.books.turns.run("books", async () => {
      let sumNano = 0n;
      for (const facts of await this.books.store.factsOf(workspaceId)) sumNano += await this.followOrder(facts);
      return sumNano;
    });
    if (owedNano > 0n) this.owing?.add(workspaceId);
    else this.owing?.delete(workspaceId);
    return owedNano;
  }

  /** Tries again what could not be taken, and, the first time, what a crash may have cut off. */
  async run(): Promise<void> {
    this.owing ??= new Set(await this.books.store.claimedWorkspaces());
    for (const workspaceId of [...this.owing]) await this.follow(workspaceId);
  }

  private async followOrder(facts: OrderFacts): Promise<bigint> {
    const order = await this.books.orders.find(facts.orderId);
    if (order === undefined) return 0n;
    for (const document of dueCreditNotes(order, facts)) await this.issue(order, document);
    const dueNano = nanoFromCents(creditPartOf(claimedCents(facts.claims, order), order)) - facts.takenNano;
    if (dueNano === 0n) return 0n;
    const id = `txn_${order.id}_${facts.movementCount + 1}`;
    const { workspaceId, id: reference } = order;
    const rows = (takenNano: bigint, atMs: number): Insert[] => [
      { statement: movementInsert, values: [reference, facts.movementCount + 1, workspaceId, id, Number(takenNano), atMs] },
      ...auditRows({ workspaceId, action: `credits ${takenNano > 0n ? "taken" : "given"} back`, target: `${reference} ${id}` }, atMs),
    ];
    if (dueNano > 0n) {
      const takenNano = await this.withdrawals.refund({
        id, workspaceId, amountNano: dueNano, reference, alongside: (taken) => rows(taken.takenNano, taken.atMs),
      });
      return dueNano - takenNano;
    }
    await this.books.ledger.credit({
      id, workspaceId, bucket: "topup", kind: "topup", amountNano: -dueNano, reference, alongside: (atMs) => rows(dueNano, atMs),
    });
    return 0n;
  }

  private async issue(order: Order, part: CreditNote): Promise<void> {
    const { store, settings, clock } = this.books;
    const series = seriesOf("credit_note", order);
    const { id: orderId, workspaceId, currency, buyer } = order;
    const values = documentValues({
      ...part, series, number: await store.nextNumber(series), orderId, workspaceId, issuedAtMs: clock.nowMs(),
      currency, seller: settings.seller, buyer,
    });
    await this.commits.commit({ inserts: [{ statement: documentInsert, values }], adds: [] });
  }
}

type CreditNote = Pick<IssuedDocument, "reference" | "creditCents" | "feeCents">;

/** The reference of the note that takes a credit note back, since its refund failed. */
const takenBack = (refundId: string): string => `${refundId} failed`;

/** What is still to be issued: a note for each refund, and one below zero for each that failed after it had one. */
function dueCreditNotes(order: Order, { claims, creditNotes }: OrderFacts): CreditNote[] {
  let refunded = creditNotes.reduce((cents, { creditCents, feeCents }) => cents + creditCents + feeCents, 0);
  return claims.filter(({ kind }) => kind === "refund").flatMap((claim) => {
    const noted = creditNotes.find(({ reference }) => reference === claim.id);
    if (takesMoney(claim)) {
      if (noted !== undefined) return [];
      const [from, to] = [refunded, Math.min(refunded + claim.amountCents, order.chargeCents)];
      refunded = to;
      const creditCents = creditPartOf(to, order) - creditPartOf(from, order);
      return [{ reference: claim.id, creditCents, feeCents: to - from - creditCents }];
    }
    const reference = takenBack(claim.id);
    if (noted === undefined || creditNotes.some((each) => each.reference === reference)) return [];
    refunded -= noted.creditCents + noted.feeCents;
    return [{ reference, creditCents: -noted.creditCents, feeCents: -noted.feeCents }];
  });
}

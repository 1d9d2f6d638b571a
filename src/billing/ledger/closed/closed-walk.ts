import { type ClosedTables, createClosingHasher, type ClosingHasher } from "./closed-books.ts";

/** Reads rows from a database of either engine. */
export type Query = (text: string) => Promise<readonly Record<string, unknown>[]>;

type Statement = ClosedTables["account_statements"];

/** A link of the chain over closed transfers, as its row has it. */
export type Link = ClosedTables["closed_links"];

/** The most closed transfers that one query reads. */
const rowsAtOnce = 10_000;

/**
 * The sums of an account: its balance after the previous month, and its movements in the month that
 * is being checked.
 */
interface Sums {
  openingNano: bigint;
  debitNano: bigint;
  creditNano: bigint;
  transfers: number;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** The amount columns, as text so that large amounts keep every digit. */
const amountsSql = ["opening_nano", "debit_nano", "credit_nano", "closing_nano"]
  .map((name) => `cast(${name} as text) as ${name}`)
  .join(", ");

/** Checks the chain link by link, and adds up the movements of its transfers. */
export class ClosedWalk {
  private readonly hasher: ClosingHasher;
  private readonly sums = new Map<string, Sums>();
  private readonly problems: string[] = [];

  constructor(
    private readonly query: Query,
    encryptionKey: Uint8Array,
  ) {
    this.hasher = createClosingHasher(encryptionKey);
  }

  async check(links: readonly Link[]): Promise<string[]> {
    let previous: Link | undefined;
    for (const [index, link] of links.entries()) {
      this.checkPlace(link, previous);
      const facts = { ...link, previous: previous?.hash ?? "" };
      if (link.kind === "batch") {
        const macs = await this.checkBatch(link);
        if (macs !== undefined && this.hasher.batch(facts, macs) !== link.hash)
          this.report(`the link ${link.part} of the closed month ${link.month} does not fit`);
      }
      if (links[index + 1]?.month !== link.month) {
        const statements = await this.checkStatements(link.month);
        const isSealed = link.kind === "statements";
        if (isSealed && statements && this.hasher.statements(facts, statements) !== link.hash)
          this.report(`the link over the statements of ${link.month} does not fit`);
        if (!isSealed && index < links.length - 1)
          this.report(`the link over the statements of ${link.month} is missing`);
      }
      previous = link;
    }
    return this.problems;
  }

  private report(problem: string): void {
    this.problems.push(`ledger: ${problem}`);
  }

  private checkPlace(link: Link, previous: Link | undefined): void {
    const isFirst = previous?.month !== link.month;
    const part = isFirst ? 0 : previous.part + 1;
    if (link.part > part) {
      const missing = link.part - 1 === part ? `link ${part}` : `links ${part} to ${link.part - 1}`;
      this.report(`the ${missing} of the closed month ${link.month} is missing`);
    }
  }

  /** Returns the hashes of a batch in order, or undefined where one of its transfers is wrong. */
  private async checkBatch({ month, first_seq, last_seq }: Link): Promise<string[] | undefined> {
    const macs: string[] = [];
    let isWhole = true;
    for (let from = first_seq; from <= last_seq; from += rowsAtOnce) {
      const to = Math.min(last_seq, from + rowsAtOnce - 1);
      const rows = await this.query(
        `select * from closed_transfers where month = ${quoted(month)} and seq between ${from} and ${to} order by seq`,
      );
      let [next, before] = [from, "the first"];
      for (const row of rows) {
        const [seq, id] = [Number(row["seq"]), String(row["id"])];
        if (seq > next) isWhole = this.reportGone(month, { from: next, to: seq - 1, before });
        const transfer = readTransfer(row);
        if (this.hasher.transfer(transfer) !== transfer.mac) {
          this.report(`the closed transfer ${id} was changed`);
          isWhole = false;
        }
        this.count(transfer);
        macs.push(transfer.mac);
        [next, before] = [seq + 1, id];
      }
      if (next <= to) isWhole = this.reportGone(month, { from: next, to, before });
    }
    return isWhole ? macs : undefined;
  }

  private reportGone(
    month: string,
    { from, to, before }: { from: number; to: number; before: string },
  ): false {
    const place = from === to ? `transfer ${from}` : `transfers ${from} to ${to}`;
    this.report(`${place} of the closed month ${month}, after ${before}, was deleted`);
    return false;
  }

  private count({
    debit_account: debit,
    credit_account: credit,
    amount_nano: amount,
  }: ClosedTables["closed_transfers"]): void {
    const [from, to] = [this.sumsOf(debit), this.sumsOf(credit)];
    from.debitNano += BigInt(amount);
    from.transfers += 1;
    to.creditNano += BigInt(amount);
    to.transfers += 1;
  }

  private sumsOf(account: string): Sums {
    const known = this.sums.get(account) ?? {
      openingNano: 0n,
      debitNano: 0n,
      creditNano: 0n,
      transfers: 0,
    };
    this.sums.set(account, known);
    return known;
  }

  /**
   * Compares the statements of a month with its transfers. Returns them, or undefined where one is
   * wrong.
   */
  private async checkStatements(month: string): Promise<Statement[] | undefined> {
    const rows = await this.query(
      `select account, month, ${amountsSql}, transfers from account_statements where month = ${quoted(month)} order by account`,
    );
    const written = rows.map(readStatement);
    const missing = new Map([...this.sums].filter(([, { transfers }]) => transfers > 0));
    let isWhole = true;
    for (const row of written) {
      const sums = this.sumsOf(row.account);
      missing.delete(row.account);
      const closingNano = sums.openingNano + sums.creditNano - sums.debitNano;
      const isRight =
        BigInt(row.opening_nano) === sums.openingNano &&
        BigInt(row.debit_nano) === sums.debitNano &&
        BigInt(row.credit_nano) === sums.creditNano &&
        BigInt(row.closing_nano) === closingNano &&
        row.transfers === sums.transfers;
      if (isRight) continue;
      isWhole = false;
      this.report(
        `the statement of ${row.account} for ${month} goes from ${row.opening_nano} to ${row.closing_nano}, ` +
          `its closed transfers from ${sums.openingNano} to ${closingNano}`,
      );
    }
    for (const account of missing.keys()) {
      isWhole = false;
      this.report(`the statement of ${account} for ${month} is missing`);
    }
    for (const sums of this.sums.values()) {
      sums.openingNano += sums.creditNano - sums.debitNano;
      Object.assign(sums, { debitNano: 0n, creditNano: 0n, transfers: 0 });
    }
    return isWhole ? written : undefined;
  }
}

const readTransfer = (row: Record<string, unknown>): ClosedTables["closed_transfers"] => ({
  id: String(row["id"]),
  debit_account: String(row["debit_account"]),
  credit_account: String(row["credit_account"]),
  amount_nano: BigInt(String(row["amount_nano"])),
  kind: String(row["kind"]),
  reference: row["reference"] === null ? null : String(row["reference"]),
  created_at_ms: Number(row["created_at_ms"]),
  month: String(row["month"]) as Statement["month"],
  seq: Number(row["seq"]),
  mac: String(row["mac"]),
});

const readStatement = (row: Record<string, unknown>): Statement => ({
  account: String(row["account"]),
  month: String(row["month"]) as Statement["month"],
  opening_nano: BigInt(String(row["opening_nano"])),
  debit_nano: BigInt(String(row["debit_nano"])),
  credit_nano: BigInt(String(row["credit_nano"])),
  closing_nano: BigInt(String(row["closing_nano"])),
  transfers: Number(row["transfers"]),
});

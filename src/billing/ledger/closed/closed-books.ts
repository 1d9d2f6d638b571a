import { hkdfSync } from "node:crypto";
import type { Month } from "../month.ts";

/** A row of the table `transfers`. */
export interface TransferRow {
  id: string;
  debit_account: string;
  credit_account: string;
  amount_nano: number | bigint;
  kind: string;
  reference: string | null;
  created_at_ms: number;
}

/**
 * The tables of closed months, which `migrations/2026-11-26-closed-months.ts` describes. Amounts
 * are nano-USD.
 */
export interface ClosedTables {
  /**
   * `seq` numbers the transfers of a month, from 1. `mac` is a keyed hash over all other columns.
   */
  closed_transfers: TransferRow & { month: Month; seq: number; mac: string };
  account_statements: {
    account: string;
    month: Month;
    opening_nano: number | bigint;
    debit_nano: number | bigint;
    credit_nano: number | bigint;
    closing_nano: number | bigint;
    transfers: number;
  };
  closed_links: {
    month: Month;
    part: number;
    kind: "batch" | "statements";
    first_seq: number;
    last_seq: number;
    hash: string;
  };
}

/** The columns of a transfer, in open and in closed months. */
export const transferColumns = [
  "id",
  "debit_account",
  "credit_account",
  "amount_nano",
  "kind",
  "reference",
  "created_at_ms",
] as const;

/** A transfer of a closed month, without its keyed hash. */
type ClosedRow = Omit<ClosedTables["closed_transfers"], "mac">;
/** A link of the chain without its hash, and with the hash of the previous link. */
type LinkFacts = Omit<ClosedTables["closed_links"], "hash"> & { previous: string };

/** Hashes the contents of closed months with a key that the database does not contain. */
export interface ClosingHasher {
  /** Returns the hash of a transfer and its place in the month, 22 characters long. */
  transfer(row: ClosedRow): string;
  /** Returns the hash of a batch, over the hashes of its transfers in order. */
  batch(link: LinkFacts, macs: readonly string[]): string;
  /** Returns the hash of all statements of a month, in the order of their accounts. */
  statements(link: LinkFacts, statements: readonly ClosedTables["account_statements"][]): string;
}

/**
 * Creates the hasher of closed months. Its key derives from the encryption key, as that of the
 * audit log does.
 */
export function createClosingHasher(encryptionKey: Uint8Array): ClosingHasher {
  const key = new Uint8Array(
    hkdfSync("sha256", encryptionKey, "", "switchyard closed months v1", 32),
  );
  const hmac = (parts: unknown) =>
    new Bun.CryptoHasher("sha256", key).update(JSON.stringify(parts));
  const linkHash = (link: LinkFacts, content: unknown): string =>
    hmac([
      link.month,
      link.part,
      link.kind,
      link.first_seq,
      link.last_seq,
      link.previous,
      content,
    ]).digest("hex");
  return {
    transfer: (row) =>
      hmac([row.month, row.seq, ...transferColumns.map((column) => textOf(row[column]))])
        .digest("base64url")
        .slice(0, 22),
    batch: (link, macs) => linkHash(link, macs),
    statements: (link, statements) =>
      linkHash(
        link,
        statements.map((row) => statementColumns.map((column) => textOf(row[column]))),
      ),
  };
}

const statementColumns = [
  "account",
  "opening_nano",
  "debit_nano",
  "credit_nano",
  "closing_nano",
  "transfers",
] as const;

/**
 * Returns the text of a column. Integers are numbers, bigints or texts, depending on the engine and
 * their size.
 */
const textOf = (value: string | number | bigint | null): string | null =>
  value === null ? null : String(value);

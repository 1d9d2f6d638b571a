import { hkdfSync } from "node:crypto";
import type { Month } from "./month.ts";

/** A row of the transfers. */
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
 * Tables of closed months; `migrations/2026-11-26-closed-months.ts` says what they mean. Amounts
 * are nano-USD.
 */
export interface ClosedTables {
  /** `seq` numbers the transfers of a month from 1 on; `mac` is a keyed hash over all the others. */
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

/** Columns of a transfer, closed or not. */
export const transferColumns = [
  "id",
  "debit_account",
  "credit_account",
  "amount_nano",
  "kind",
  "reference",
  "created_at_ms",
] as const;

/** A transfer as a month holds it. */
type ClosedRow = Omit<ClosedTables["closed_transfers"], "mac">;
/** A link without its hash, and the hash of the one before it. */
type LinkFacts = Omit<ClosedTables["closed_links"], "hash"> & { previous: string };

/** Hashes what is closed under a key that the database does not hold. */
export interface ClosingHasher {
  /** 22 characters over a transfer and its place. */
  transfer(row: ClosedRow): string;
  /** Over a batch, by the hashes of its transfers in their order. */
  batch(link: LinkFacts, macs: readonly string[]): string;
  /** Over all statements of a month, in the order of their accounts. */
  statements(link: LinkFacts, statements: readonly ClosedTables["account_statements"][]): string;
}

/** Derives the key of closed months from the encryption key, as that of the audit log is. */
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

/** Integers come as numbers, bigints or texts, after the engine and their size. */
const textOf = (value: string | number | bigint | null): string | null =>
  value === null ? null : String(value);

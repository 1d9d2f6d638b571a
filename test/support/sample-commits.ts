import type {
  AddStatement,
  CommitUnit,
  InsertStatement,
} from "../../src/platform/storage/commit-queue.ts";
import { createTable } from "../../src/platform/storage/create-table.ts";
import type { StorageOptions, Migration } from "../../src/platform/storage/storage.ts";

/** Tables of the storage tests: entries, the running totals of their accounts, and notes. */
export interface SampleSchema {
  entries: { id: string; account: string; amount: number | bigint };
  totals: { account: string; amount: number | bigint; entries: number };
  notes: { id: string; text: string | null; weight: number | null };
}

const sampleMigration: Migration = {
  name: "2026-01-01-sample",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "entries",
      columns: {
        id: "text primary key",
        account: "text not null",
        amount: "integer not null check (amount <> 13)",
      },
    });
    await createTable(database, kind, {
      name: "totals",
      columns: {
        account: "text primary key not null",
        amount: "integer not null",
        entries: "integer not null",
      },
    });
    await createTable(database, kind, {
      name: "notes",
      columns: { id: "text primary key", text: "text", weight: "real" },
    });
  },
};

const entryInsert: InsertStatement = {
  name: "entry",
  table: "entries",
  columns: ["id", "account", "amount"],
};
export const noteInsert: InsertStatement = {
  name: "note",
  table: "notes",
  columns: ["id", "text", "weight"],
};
export const totalAdd: AddStatement = {
  name: "total",
  table: "totals",
  keyColumns: ["account"],
  sumColumns: ["amount", "entries"],
};

/** The options of `openStorage` for the sample tables. */
export const sampleOptions: Pick<StorageOptions, "migrations" | "commitStatements" | "durability"> =
  {
    migrations: [sampleMigration],
    commitStatements: { inserts: [entryInsert, noteInsert], adds: [totalAdd] },
    durability: "process",
  };

/** Returns an entry with its share of the total. The database refuses the amount 13. */
export const entryUnit = (id: string, amount: number, account = "acme"): CommitUnit => ({
  inserts: [{ statement: entryInsert, values: [id, account, amount] }],
  adds: [{ statement: totalAdd, key: [account], sums: [amount, 1] }],
});

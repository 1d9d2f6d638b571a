import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { sql } from "kysely";
import { CreditModel } from "../../../test/support/credit-model.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import {
  CrashedError,
  FaultyCommits,
  type CommitFate,
} from "../../../test/support/faulty-commits.ts";
import { putMigratedSqlite } from "../../../test/support/migrated-sqlite.ts";
import { isNightly } from "../../../test/support/nightly.ts";
import { migratedDatabase } from "../../../test/support/postgres.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { migrations } from "../../platform/storage/migrations/index.ts";
import { openStorage } from "../../platform/storage/open-storage.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import { AccountBook, balanceOf } from "../ledger/book/account-book.ts";
import { grantInsert, Grants } from "./grants.ts";
import { GrantStore } from "./grant-store.ts";
import { LedgerStore, type LedgerTables } from "../ledger/ledger-store.ts";
import { Ledger } from "../ledger/ledger.ts";
import { monthOf } from "../ledger/month.ts";
import { ledgerAdds, transferInsert } from "../ledger/transfer.ts";
import { Withdrawals } from "./withdrawals.ts";

/**
 * Histories that share a database, each in a workspace of its own: what is loaded after a crash
 * stays small.
 */
const historiesPerDatabase = 40;
const startMs = Date.UTC(2026, 10, 21, 12);

const amount = fc.bigInt({ min: 1n, max: 5_000_000_000n });
const fate = fc.constantFrom<CommitFate>(
  "works",
  "works",
  "works",
  "refused",
  "crash-before",
  "crash-after",
);
const action = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom("grant", "top-up"), amount, fate }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("reserve" as const), amount, fate }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("post" as const), amount, fate }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("void", "refund"), amount, fate }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("lapse" as const), amount, fate }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("crash", "days"), amount, fate }) },
);
type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

const openLedgerStorage = (url: string): Promise<Storage<LedgerTables>> =>
  openStorage<LedgerTables>({
    url,
    durability: "process",
    migrations,
    commitStatements: { inserts: [transferInsert, grantInsert], adds: ledgerAdds },
  });

/** One history: the ledger on a database, and the model beside it. */
class History {
  readonly model = new CreditModel();
  readonly clock = new FakeClock(startMs);
  private readonly commits: FaultyCommits;
  private ledger!: Ledger;
  private grants!: Grants;
  private withdrawals!: Withdrawals;
  private count = 0;
  private readonly storage: Storage<LedgerTables>;
  private readonly workspaceId: string;

  constructor(storage: Storage<LedgerTables>, workspaceId: string) {
    this.storage = storage;
    this.workspaceId = workspaceId;
    this.commits = new FaultyCommits(storage.commits);
  }

  /** What a new process does: holds are gone, and everything else is what the database says. */
  async start(): Promise<void> {
    const { clock, commits, storage } = this;
    const book = new AccountBook();
    await new LedgerStore({ database: storage.database, commits }).loadInto(book, {
      nowMs: clock.nowMs(),
      parents: new Map(),
    });
    this.ledger = new Ledger({ book, commits, clock });
    this.grants = new Grants({
      ledger: this.ledger,
      store: new GrantStore({ database: withTables(storage.database), commits }),
    });
    this.withdrawals = new Withdrawals({ purse: this.ledger, commits, clock });
  }

  async act({ kind, amount, fate }: Action): Promise<void> {
    const { workspaceId, model, ledger } = this;
    const id = `${workspaceId}_${this.count++}`;
    const month = monthOf(this.clock.nowMs());
    const [hold] = model.openHolds;
    if (kind === "reserve") {
      const outcome = ledger.reserve({
        holdId: `gen_${id}`,
        workspaceId,
        keyId: workspaceId,
        keyLimit: null,
        ceilingNano: amount,
      });
      expect(outcome.ok).toBe(model.reserve(`gen_${id}`, amount));
    } else if (kind === "void" && hold !== undefined) {
      ledger.void(hold);
      model.void(hold);
    } else if (kind === "crash") await this.crash();
    else if (kind === "days") this.wait(Number(amount % 20n) + 1);
    else if (kind === "grant") {
      const grant = {
        transferId: `txn_${id}`,
        workspaceId,
        bucket: "monthly",
        kind: "admin",
        amountNano: amount,
        description: null,
        grantedBy: "t",
      } as const;
      await this.meet(
        fate,
        () => this.grants.give(grant),
        () => model.grant(month, amount),
      );
    } else if (kind === "top-up") {
      const credit = {
        id: `txn_${id}`,
        workspaceId,
        bucket: "topup",
        amountNano: amount,
        kind: "topup",
        reference: null,
      } as const;
      await this.meet(
        fate,
        () => ledger.credit(credit),
        () => (model.topup += amount),
      );
    } else if (kind === "post" && hold !== undefined) {
      const request = {
        holdId: hold,
        amountNano: amount,
        alongside: () => ({ inserts: [], adds: [] }),
      };
      await this.meet(
        fate,
        () => ledger.post(request).durable,
        () => model.post(hold, amount),
      );
      model.void(hold);
    } else if (kind === "refund") {
      const refund = { id: `txn_${id}`, workspaceId, amountNano: amount, reference: null };
      await this.meet(
        fate,
        () => this.withdrawals.refund(refund),
        () => model.refund(amount),
      );
    } else if (kind === "lapse")
      await this.meet(
        fate,
        () => this.withdrawals.lapse(workspaceId),
        () => model.lapse(month),
      );
    this.expectBook();
  }

  /**
   * Does what writes, with a commit of a certain fate; the model follows where the commit stands.
   */
  private async meet(
    fate: CommitFate,
    work: () => Promise<unknown>,
    follow: () => unknown,
  ): Promise<void> {
    this.commits.next = fate;
    const failure: unknown = await work().then(
      () => undefined,
      (error: unknown) => error,
    );
    // Where nothing had to be written, nothing failed.
    const met = this.commits.next === "works" ? fate : "works";
    this.commits.next = "works";
    if (met === "works" || met === "crash-after") follow();
    expect(failure === undefined).toBe(met === "works");
    if (failure instanceof CrashedError) await this.crash();
  }

  private async crash(): Promise<void> {
    this.model.crash();
    await this.start();
  }

  private wait(days: number): void {
    this.clock.advance(days * dayMs);
    this.model.today = 0n;
  }

  private expectBook(): void {
    const account = this.ledger.book.workspace(this.workspaceId);
    const { model } = this;
    expect([account.monthlyNano, account.topupNano, account.heldNano, account.usedNano]).toEqual([
      model.monthlySum,
      model.topup,
      model.held,
      model.used,
    ]);
    expect(account.day === Math.floor(this.clock.nowMs() / dayMs) ? account.dayNano : 0n).toBe(
      model.today,
    );
    expect(account.heldNano <= balanceOf(account)).toBe(true);
  }

  /** The balances in the database and the sums of its transfers are the model's, too. */
  async expectDatabase(): Promise<void> {
    const { database } = this.storage;
    for (const [bucket, wanted] of [
      ["monthly", this.model.monthlySum],
      ["topup", this.model.topup],
    ] as const) {
      const id = `${this.workspaceId}:${bucket}`;
      const row = await database
        .selectFrom("ledger_accounts")
        .select("balance_nano")
        .where("id", "=", id)
        .executeTakeFirst();
      expect(BigInt(row?.balance_nano ?? 0)).toBe(wanted);
      const { rows } = await sql<{ sum: string | number | null }>`select
        sum(case when credit_account = ${id} then amount_nano else -amount_nano end) as sum
        from transfers where credit_account = ${id} or debit_account = ${id}`.execute(database);
      expect(BigInt(rows[0]?.sum ?? 0)).toBe(wanted);
    }
  }
}

async function runHistories(count: number, freshUrl: () => Promise<string>): Promise<void> {
  let storage: Storage<LedgerTables> | undefined;
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 24 }), async (actions) => {
      if (storage === undefined || run % historiesPerDatabase === 0) {
        await storage?.close();
        storage = await openLedgerStorage(await freshUrl());
      }
      const history = new History(storage, `ws_${run++}`);
      await history.start();
      for (const each of actions) await history.act(each);
      await history.expectDatabase();
    }),
    { numRuns: count },
  );
  const query = sql<{
    sum: string | number;
  }>`select sum(balance_nano) as sum from ${sql.table("ledger_accounts")}`;
  const { rows } = await query.execute(storage?.database as never);
  expect(Number(rows[0]?.sum)).toBe(0);
  await storage?.close();
}

/** Histories on SQLite; nightly more of them. */
const histories = isNightly ? 1_000 : 250;

test(`${histories} random histories of grants, charges, refunds and crashes match the model on SQLite`, async () => {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-histories-"));
  await runHistories(histories, () =>
    putMigratedSqlite(mkdtempSync(join(directory, "test-"))),
  ).finally(() => rmSync(directory, { recursive: true, force: true }));
}, 240_000);

test("40 histories match the model on Postgres", () => runHistories(40, migratedDatabase), 240_000);

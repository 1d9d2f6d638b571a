import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import {
  chargeUnit,
  type ClosedLedger,
  closingKey,
  openClosedLedger,
  problemsOf,
  topUpUnit,
} from "../../../../test/support/closed-ledger.ts";
import { freshDatabase, migratedDatabase } from "../../../../test/support/postgres.ts";
import { dayMs, systemClock } from "../../../platform/kernel/clock.ts";
import { newId } from "../../../platform/kernel/ids.ts";
import { isUniqueViolation } from "../../../platform/storage/storage-error.ts";
import { Statements } from "../../credits/statements.ts";
import { ClosedMonths } from "./closed-months.ts";
import { LedgerStore } from "../ledger-store.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-closed-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let databaseCount = 0;
const sqliteUrl = async (): Promise<string> => `sqlite:${join(root, `${++databaseCount}.db`)}`;
/** Each engine with a database for the ledger, and an empty one. */
const engines: [string, () => Promise<string>, () => Promise<string>][] = [
  ["SQLite", sqliteUrl, sqliteUrl],
  ["Postgres", migratedDatabase, freshDatabase],
];

const workspaceIds = ["ws_a", "ws_b"];
const nowMs = Date.UTC(2026, 10, 21, 12);
/** The start of October: September is the last month that is closed in November. */
const openFromMs = Date.UTC(2026, 9, 1);

/**
 * Writes two top-ups and ten charges of each workspace for each month from July to November 2026.
 */
async function fill({ commits }: ClosedLedger): Promise<void> {
  const units = [6, 7, 8, 9, 10].flatMap((month) =>
    workspaceIds.flatMap((workspaceId) => [
      ...[2, 17].map((day) => topUpUnit(workspaceId, Date.UTC(2026, month, day))),
      ...Array.from({ length: 10 }, (_, index) =>
        chargeUnit(workspaceId, Date.UTC(2026, month, 3) + (index * dayMs) / 3),
      ),
    ]),
  );
  await Promise.all(units.map((unit) => commits.commit(unit)));
}

const openMonths = ({ database }: ClosedLedger, options = {}): ClosedMonths =>
  new ClosedMonths({ database, encryptionKey: closingKey, batchRows: 7, ...options });

const balancesOf = ({ database }: ClosedLedger) =>
  database.selectFrom("ledger_accounts").selectAll().orderBy("id").execute();

/** Returns every line of the statements that workspaces are shown. */
async function linesOf(storage: ClosedLedger) {
  const statements = new Statements(storage);
  return Promise.all(
    workspaceIds.map(async (id) => {
      const first = await statements.page(id, { before: undefined, limit: 7 });
      return [...first, ...(await statements.page(id, { before: first.at(-1), limit: 200 }))];
    }),
  );
}

const run = ({ database }: ClosedLedger, text: string) => sql.raw(text).execute(database);

async function filled(freshUrl: () => Promise<string>): Promise<ClosedLedger> {
  const storage = await openClosedLedger(await freshUrl());
  await fill(storage);
  return storage;
}

describe.each(engines)("closed months on %s", (_, freshUrl, emptyUrl) => {
  test("moves the transfers of months before the last full month and keeps balances, lists and charges", async () => {
    const storage = await filled(freshUrl);
    const { database, commits } = storage;
    const chargeId = newId("gen", Date.UTC(2026, 7, 20));
    await commits.commit(chargeUnit("ws_a", Date.UTC(2026, 7, 20), chargeId));
    const store = new LedgerStore({ database, commits });
    const shown = async () => [
      await balancesOf(storage),
      await linesOf(storage),
      await store.transfersOf(chargeId),
      await store.transferExists(`txn_${chargeId.slice("gen_".length)}t`),
    ];
    const before = await shown();
    expect(before[1]).toEqual([
      expect.arrayContaining([expect.objectContaining({ kind: "topup" })]),
      expect.anything(),
    ]);
    await openMonths(storage).closeDue(nowMs);
    expect(await shown()).toEqual(before);
    const left = await database.selectFrom("transfers").select("created_at_ms").execute();
    expect(left.length).toBe(2 * 2 * (2 + 10 * 2));
    expect(Math.min(...left.map((row) => row.created_at_ms))).toBeGreaterThan(openFromMs);
    const statements = await database
      .selectFrom("account_statements")
      .selectAll()
      .where("account", "=", "ws_b:topup")
      .orderBy("month")
      .execute();
    const perMonthNano = 2n * 9_000_000_000_001n - 10n * 1_000_003n;
    expect(statements.map((row) => [row.month, BigInt(row.closing_nano), row.transfers])).toEqual([
      ["2026-07", perMonthNano, 12],
      ["2026-08", 2n * perMonthNano, 12],
      ["2026-09", 3n * perMonthNano, 12],
    ]);
    expect(await problemsOf(storage)).toEqual([]);
    // Nothing more is due now. A month later, October is.
    const links = await database.selectFrom("closed_links").selectAll().execute();
    await openMonths(storage).closeDue(nowMs);
    expect(await database.selectFrom("closed_links").selectAll().execute()).toEqual(links);
    await openMonths(storage).closeDue(nowMs + 15 * dayMs);
    expect(await database.selectFrom("transfers").select("id").execute()).toHaveLength(44);
    expect(await problemsOf(storage)).toEqual([]);
    await storage.close();
  }, 240_000);

  test("refuses a repeated transfer that is in a closed month, alone or in a batch", async () => {
    const storage = await openClosedLedger(await freshUrl());
    const atMs = Date.UTC(2026, 6, 5);
    const [chargeId, topUpId] = [newId("gen", atMs), "txn_bootstrap_credits"];
    const charge = chargeUnit("ws_a", atMs, chargeId);
    const topUp = topUpUnit("ws_a", atMs, topUpId);
    // Another gateway on the same database may repeat a charge.
    const units = storage.kind === "postgres" ? [topUp, charge] : [topUp];
    for (const unit of units) await storage.commits.commit(unit);
    await openMonths(storage).closeDue(nowMs);
    expect(await storage.database.selectFrom("transfers").selectAll().execute()).toEqual([]);
    const before = await balancesOf(storage);
    const repeated = await Promise.allSettled(units.map((unit) => storage.commits.commit(unit)));
    for (const outcome of repeated)
      expect(outcome.status === "rejected" && isUniqueViolation(outcome.reason)).toBe(true);
    expect(await balancesOf(storage)).toEqual(before);
    const mixed = [...units, topUpUnit("ws_b", nowMs)];
    const outcomes = await Promise.allSettled(mixed.map((unit) => storage.commits.commit(unit)));
    const stand = outcomes.map(({ status }) => status === "fulfilled");
    expect(stand).toEqual([...units.map(() => false), true]);
    expect(await problemsOf(storage)).toEqual([]);
    await storage.close();
  }, 240_000);

  test("closes a late transfer with the next month", async () => {
    const storage = await filled(freshUrl);
    await openMonths(storage).closeDue(nowMs);
    await storage.commits.commit(chargeUnit("ws_a", Date.UTC(2026, 7, 9)));
    expect(await problemsOf(storage)).toEqual([]);
    await openMonths(storage).closeDue(nowMs + 15 * dayMs);
    const late = await storage.database
      .selectFrom("closed_transfers")
      .select("month")
      .where("created_at_ms", "=", Date.UTC(2026, 7, 9))
      .execute();
    expect(late.map(({ month }) => month)).toEqual(["2026-10", "2026-10"]);
    expect(await problemsOf(storage)).toEqual([]);
    await storage.close();
  }, 240_000);

  test("keeps the books exact when closing stops between two batches, and resumes there", async () => {
    const storage = await filled(freshUrl);
    const before = await balancesOf(storage);
    for (let run = 0; ; run += 1) {
      const stopping = new AbortController();
      let batches = 0;
      const onBatch = () => ++batches > run % 4 && stopping.abort();
      await openMonths(storage, { onBatch }).closeDue(nowMs, stopping.signal);
      expect(await problemsOf(storage)).toEqual([]);
      expect(await balancesOf(storage)).toEqual(before);
      if (!stopping.signal.aborted) break;
    }
    expect(
      await storage.database.selectFrom("closed_transfers").select("id").execute(),
    ).toHaveLength(132);
    await storage.close();
  }, 240_000);

  test("keeps the books exact after kill -9 while closing, and the next gateway finishes", async () => {
    const url = await freshUrl();
    const storage = await openClosedLedger(url);
    await fill(storage);
    const before = await balancesOf(storage);
    await storage.close();
    const script = join(import.meta.dir, "../../../../test/support/close-until-killed.ts");
    // The process is killed before each statement of the first batch, and before some of later
    // ones.
    for (const statement of [4, 5, 6, 7, 8, 9, 10, 33, 90]) {
      const child = Bun.spawn([process.execPath, script, url, String(nowMs), String(statement)], {
        stderr: "inherit",
      });
      await child.exited;
      expect(child.signalCode).toBe("SIGKILL");
      const reopened = await openClosedLedger(url);
      expect(await problemsOf(reopened)).toEqual([]);
      expect(await balancesOf(reopened)).toEqual(before);
      await reopened.close();
    }
    const last = await openClosedLedger(url);
    await openMonths(last).closeDue(nowMs);
    expect(await last.database.selectFrom("closed_transfers").select("id").execute()).toHaveLength(
      132,
    );
    expect([await problemsOf(last), await balancesOf(last)]).toEqual([[], before]);
    await last.close();
  }, 240_000);

  test("reports each closed transfer that was changed, removed or added later", async () => {
    const storage = await filled(freshUrl);
    const { database } = storage;
    await openMonths(storage).closeDue(nowMs);
    const [one, next] = await database
      .selectFrom("closed_transfers")
      .selectAll()
      .where("month", "=", "2026-08")
      .where("seq", "in", [9, 10])
      .orderBy("seq")
      .execute();
    const id = String(next?.id);
    const mac = String(next?.mac);
    const where = `where id = '${id}'`;
    /**
     * The statement that makes a change, the one that undoes it, and the problem that is reported.
     */
    const changes: [string, string, string][] = [
      [
        `update closed_transfers set reference = 'x' ${where}`,
        `update closed_transfers set reference = ${next?.reference === null ? "null" : `'${next?.reference}'`} ${where}`,
        `ledger: the closed transfer ${id} was changed`,
      ],
      [
        `update closed_transfers set amount_nano = amount_nano + 1 ${where}`,
        `update closed_transfers set amount_nano = amount_nano - 1 ${where}`,
        `ledger: the closed transfer ${id} was changed`,
      ],
      [
        `update closed_transfers set mac = 'x' ${where}`,
        `update closed_transfers set mac = '${mac}' ${where}`,
        `ledger: the closed transfer ${id} was changed`,
      ],
      [
        "update account_statements set debit_nano = debit_nano + 1 where account = 'ws_a:topup' and month = '2026-08'",
        "update account_statements set debit_nano = debit_nano - 1 where account = 'ws_a:topup' and month = '2026-08'",
        "ledger: the statement of ws_a:topup for 2026-08 goes from",
      ],
      [
        "update account_statements set closing_nano = closing_nano + 1 where account = 'ws_a:topup' and month = '2026-09'",
        "update account_statements set closing_nano = closing_nano - 1 where account = 'ws_a:topup' and month = '2026-09'",
        "ledger: the balance of ws_a:topup is",
      ],
      [
        "insert into closed_transfers values ('txn_x', 'a', 'b', 5, 'grant', null, 1, '2026-08', 999, 'x')",
        "delete from closed_transfers where id = 'txn_x'",
        "ledger: the closed transfer txn_x was added beside its month",
      ],
      [
        "insert into account_statements values ('a', '2026-08', 0, 0, 0, 0, 0)",
        "delete from account_statements where account = 'a'",
        "ledger: the link over the statements of 2026-08 does not fit",
      ],
      [
        "update closed_links set hash = 'x' where month = '2026-08' and part = 1",
        "",
        "ledger: the link 2 of the closed month 2026-08 does not fit",
      ],
      [
        "delete from closed_links where month = '2026-08' and part = 2",
        "",
        "ledger: the link 2 of the closed month 2026-08 is missing",
      ],
      [
        `delete from closed_transfers ${where}`,
        "",
        `ledger: transfer 10 of the closed month 2026-08, after ${one?.id}, was deleted`,
      ],
    ];
    for (const [change, undo, said] of changes) {
      await run(storage, change);
      expect(await problemsOf(storage)).toContainEqual(expect.stringContaining(said));
      if (undo === "") continue;
      await run(storage, undo);
      expect(await problemsOf(storage)).toEqual([]);
    }
    await storage.close();
  }, 240_000);

  test("closes nothing within a week after the migration, while older gateways may still run", async () => {
    const migratedFromMs = systemClock.nowMs();
    const storage = await openClosedLedger(await emptyUrl());
    const migratedByMs = systemClock.nowMs();
    const months = openMonths(storage);
    expect([
      await months.mayBegin(migratedFromMs + 7 * dayMs - 1),
      await months.mayBegin(migratedByMs + 7 * dayMs),
    ]).toEqual([false, true]);
    await storage.close();
  }, 240_000);

  test("reports closed transfers that were written with a different encryption key", async () => {
    const storage = await filled(freshUrl);
    await openMonths(storage, { encryptionKey: new Uint8Array(32).fill(8) }).closeDue(nowMs);
    expect((await problemsOf(storage)).length).toBeGreaterThan(132);
    await storage.close();
  }, 240_000);
});

import type { Kysely } from "kysely";
import { AccountBook } from "../../src/billing/ledger/book/account-book.ts";
import type { SpentBy } from "../../src/billing/budgets/budget-watch.ts";
import type { BlockingBudgets } from "../../src/billing/budgets/blocking-budgets.ts";
import { grantInsert, Grants } from "../../src/billing/credits/grants.ts";
import { GrantStore } from "../../src/billing/credits/grant-store.ts";
import { LedgerStore, type LedgerTables } from "../../src/billing/ledger/ledger-store.ts";
import {
  AccountReadings,
  type ReadingTables,
} from "../../src/billing/ledger/shared/account-readings.ts";
import { ledgerScript } from "../../src/billing/ledger/shared/ledger-script.ts";
import { reportScript } from "../../src/billing/ledger/shared/ledger-scripts.ts";
import { NodeLease } from "../../src/billing/ledger/shared/node-lease.ts";
import { SharedAccounts } from "../../src/billing/ledger/shared/shared-accounts.ts";
import { SharedLedger } from "../../src/billing/ledger/shared/shared-ledger.ts";
import { ledgerAdds, transferInsert } from "../../src/billing/ledger/transfer.ts";
import { Withdrawals } from "../../src/billing/credits/withdrawals.ts";
import type { Clock } from "../../src/platform/kernel/clock.ts";
import { SharedStateAwayError } from "../../src/platform/shared-state/shared-state-error.ts";
import type { SharedPart } from "../../src/platform/shared-state/shared-state.ts";
import type { CommitQueue, CommitUnit } from "../../src/platform/storage/commit-queue.ts";
import { migrations } from "../../src/platform/storage/migrations/index.ts";
import { openStorage } from "../../src/platform/storage/open-storage.ts";
import type { Storage } from "../../src/platform/storage/storage.ts";
import { withTables } from "../../src/platform/storage/with-tables.ts";
import { migratedDatabase } from "./postgres.ts";

/** What happens to the next commit. */
export type CommitFate = "works" | "refused" | "crash-before" | "crash-after";

/** Opens an empty Postgres database that holds what the ledger needs. */
export const openLedgerDatabase = async (): Promise<Storage<LedgerTables>> =>
  openStorage<LedgerTables>({
    url: await migratedDatabase(),
    durability: "process",
    migrations,
    severalGateways: true,
    commitStatements: {
      inserts: [transferInsert, grantInsert],
      adds: ledgerAdds,
    },
  });

const lookScript = ledgerScript(
  "TestLook",
  `
local absent = missing({})
if absent then return absent end
return {'ok', text(field(W, 'h')), text(field(W, 'm')), text(field(W, 't'))}`,
);

const evictScript = ledgerScript(
  "TestEvict",
  "redis.call('DEL', W, B, root .. 'k:' .. ws)\nreturn {}",
);

const openScript = ledgerScript("TestOpen", "return {redis.call('HLEN', C)}");

/** Loses everything but the run, so that the processes go on in it without a new connection. */
const flushScript = {
  name: "switchyardTestFlush",
  lua: `
local run = redis.call('GET', 'switchyard:run')
redis.call('FLUSHDB')
redis.call('SET', 'switchyard:run', run)
return {}`,
};

let nodeCount = 0;
let hearCount = 0;

/**
 * A process of the shared ledger that can die in the middle of a commit; from then on, its calls to
 * the server of shared state never settle.
 */
export class LedgerProcess {
  readonly ledger: SharedLedger;
  readonly withdrawals: Withdrawals;
  /** The process's lease, as the others see it; renewed only when a test does so. */
  readonly life: NodeLease;
  /** Whether the server of shared state is out of this process's reach. */
  isAway = false;
  /** A promise that delays the reports of charges until it resolves. */
  reportsFrom: Promise<unknown> = Promise.resolve();
  /** Whether reports arrive but their answers are lost. */
  losesReportAnswers = false;
  private readonly grants: Grants;
  private readonly accounts: SharedAccounts;
  private readonly store: LedgerStore;
  private readonly parts: {
    storage: Storage<LedgerTables>;
    shared: SharedPart;
    workspaceId: string;
    clock: Clock;
    blocking?: BlockingBudgets;
    spentBy?: SpentBy;
  };
  private next: CommitFate = "works";
  private met: CommitFate = "works";
  private isDead = false;

  constructor(parts: LedgerProcess["parts"]) {
    this.parts = parts;
    const { storage, clock } = parts;
    const database = storage.database as unknown as Kysely<ReadingTables>;
    const commits: CommitQueue = {
      commit: (unit) => this.commit(unit),
      flush: () => storage.commits.flush(),
      pendingCount: 0,
      rejectedCount: 0,
      stalled: false,
      admits: () => true,
    };
    const isAway = (): boolean => this.isAway;
    const part = {
      prefix: parts.shared.prefix,
      onRun: (listener: (runId: string) => void) => parts.shared.onRun(listener),
      get runId() {
        return isAway() ? undefined : parts.shared.runId;
      },
      run: (...call: Parameters<SharedPart["run"]>) =>
        this.isDead ? new Promise<never>(() => undefined) : this.run(call),
    };
    this.accounts = new SharedAccounts({
      shared: { parts: [part], partOf: () => part },
      nodeId: `node${nodeCount++}`,
      readings: new AccountReadings(database, parts.spentBy),
      nowMs: () => clock.nowMs(),
      leaseClockMs: () => clock.nowMs(),
      graceMs: 0,
    });
    this.life = new NodeLease({
      accounts: this.accounts,
      clock,
      onLapse: () => this.ledger.renew(),
      onError: (error) => {
        throw error;
      },
    });
    this.store = new LedgerStore({ database: storage.database, commits });
    const book = new AccountBook();
    this.ledger = new SharedLedger({
      accounts: this.accounts,
      book,
      commits,
      clock,
      ...(parts.blocking !== undefined && { blocking: parts.blocking }),
      onError: (error) => {
        throw error;
      },
      readBook: (workspaceId) =>
        this.store.refreshIn(book, { workspaceId, nowMs: clock.nowMs(), parents: new Map() }),
    });
    this.grants = new Grants({
      ledger: this.ledger,
      store: new GrantStore({ database: withTables(storage.database), commits }),
    });
    this.withdrawals = new Withdrawals({ purse: this.ledger, commits, clock });
  }

  /**
   * Runs work that commits, with this fate for its commit, and returns the fate that the commit
   * met.
   */
  async meet(fate: CommitFate, work: () => Promise<unknown>): Promise<CommitFate> {
    this.next = fate;
    this.met = "works";
    const working = work().then(
      () => undefined,
      (error: unknown) => error,
    );
    await Promise.race([working, this.death()]);
    this.next = "works";
    return this.met;
  }

  grant(transferId: string, amountNano: bigint): Promise<unknown> {
    const { workspaceId } = this.parts;
    return this.grants.give({
      transferId,
      workspaceId,
      bucket: "monthly",
      kind: "admin",
      amountNano,
      description: null,
      grantedBy: "t",
    });
  }

  /** Whether at least half of the process's lease is left. */
  get isSure(): boolean {
    return this.life.isSureIn(this.accounts.partOf(this.parts.workspaceId));
  }

  /** Returns the balances and holds of the workspace on the server of shared state. */
  async look(): Promise<{ monthlyNano: bigint; topupNano: bigint; heldNano: bigint }> {
    const { detail, monthlyNano, topupNano } = await this.accounts.ask(
      lookScript,
      this.parts.workspaceId,
      [],
    );
    return { monthlyNano, topupNano, heldNano: BigInt(detail) };
  }

  /** Returns the balances of the workspace in the database. */
  async durable(): Promise<{ monthlyNano: bigint; topupNano: bigint }> {
    const book = new AccountBook();
    const { workspaceId, clock } = this.parts;
    await this.store.refreshIn(book, { workspaceId, nowMs: clock.nowMs(), parents: new Map() });
    const { monthlyNano, topupNano } = book.workspace(workspaceId);
    return { monthlyNano, topupNano };
  }

  /**
   * Takes a hold and frees it, which makes the ledger read balances and clear up after dead
   * processes.
   */
  async hear(): Promise<void> {
    const { workspaceId } = this.parts;
    const holdId = `gen_hear_${hearCount++}`;
    await this.ledger.reserve({
      holdId,
      workspaceId,
      keyId: "look",
      keyLimit: null,
      ceilingNano: 0n,
      byokNano: 1n,
      countsByok: true,
    });
    this.ledger.void(holdId);
    await this.untilQuiet();
  }

  /** Resolves once no charge of the workspace is open and this process has reported everything. */
  async untilQuiet(): Promise<void> {
    await this.untilTold();
    while (Number((await this.accounts.run(openScript, this.parts.workspaceId, []))[0]) > 0)
      await Bun.sleep(1);
  }

  /** Resolves once the server knows the end of every charge and hold. */
  async untilTold(): Promise<void> {
    while (this.ledger.unconfirmedCount > 0) await Bun.sleep(1);
  }

  async evict(): Promise<void> {
    await this.accounts.run(evictScript, this.parts.workspaceId, []);
  }

  async flushAll(): Promise<void> {
    await this.parts.shared.run(flushScript, { keys: [], values: [] });
  }

  private async run(call: Parameters<SharedPart["run"]>): Promise<unknown> {
    if (call[0] !== reportScript) return this.parts.shared.run(...call);
    await this.reportsFrom;
    const answer = await this.parts.shared.run(...call);
    if (this.losesReportAnswers) throw new SharedStateAwayError("the answer was lost");
    return answer;
  }

  private onceDead: (() => void) | undefined;

  private death(): Promise<void> {
    return new Promise((resolve) => (this.onceDead = resolve));
  }

  private async commit(unit: CommitUnit): Promise<void> {
    const fate = this.next;
    this.next = "works";
    this.met = fate;
    if (fate === "refused") throw new Error("the database refused");
    if (fate !== "crash-before") await this.parts.storage.commits.commit(unit);
    if (fate === "works") return;
    this.isDead = true;
    this.onceDead?.();
    throw new Error("the process died");
  }
}

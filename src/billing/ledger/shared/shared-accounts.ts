import { setTimeout as delay } from "node:timers/promises";
import type { SharedPart } from "../../../platform/shared-state/shared-state.ts";
import { SharedStateAwayError } from "../../../platform/shared-state/shared-state-error.ts";
import type { AccountReadings, Balances, OpenCharge } from "./account-readings.ts";
import {
  beginSumsScript,
  chargesSinceScript,
  seedSumsScript,
  runBegunScript,
  seedScript,
} from "./reading-scripts.ts";
import type { SharedScript } from "../../../platform/shared-state/redis-client.ts";

/** How long a hold belongs to its owner without a renewal, in milliseconds. */
export const leaseMs = 30_000;

/**
 * How long nothing is read into a new run of the server or a new epoch of the database, in
 * milliseconds. By then the database has committed all charges that gateways had reported before,
 * and every gateway has reported its holds.
 */
const graceMsDefault = 2_500;

/**
 * The most readings that changes may overtake before a request fails with `SharedStateAwayError`.
 */
const readingsMax = 50;

/** The prefix that tells names of budget sums from ids of keys. */
const sumPrefix = "b:";

/** A part of the shared state, which stores everything of the workspaces in it. */
export interface LedgerPart extends Pick<SharedPart, "prefix" | "runId" | "onRun" | "run"> {
  /**
   * Resolves once it is sure that the part belongs to the database; absent or undefined where it is.
   * Rejects with `SharedStateAwayError` where that cannot be found out.
   */
  untilSure?(): Promise<void> | undefined;
}

/** The parts of the shared state that the ledger is stored in. */
export interface LedgerParts {
  readonly parts: readonly LedgerPart[];
  partOf(workspaceId: string): LedgerPart;
}

/** The dependencies of the shared accounts. */
export interface SharedAccountsOptions {
  shared: LedgerParts;
  readings: Pick<AccountReadings, "balances" | "read" | "readSums">;
  /** The id of this gateway among those that share the server. */
  nodeId: string;
  /** Returns this gateway's wall time, in milliseconds since the epoch. */
  nowMs(): number;
  /**
   * Returns the time for leases, in milliseconds; absent means the server's own time, since the
   * clocks of gateways differ.
   */
  leaseClockMs?: (() => number) | undefined;
  /** The history of the database that is read; absent means that the database has only one. */
  epoch?: { readonly id: string; readonly isFirst: boolean } | undefined;
  graceMs?: number;
}

/** The workspace and the keys that a charge belongs to. */
export interface Subject {
  workspaceId: string;
  keyIds: readonly string[];
}

/** The answer of a script that found everything it needed. */
export interface LedgerAnswer {
  outcome: string;
  detail: string;
  monthlyNano: bigint;
  topupNano: bigint;
  /** The charges whose owner has not renewed them for a lease or longer. */
  stale: OpenCharge[];
}

/**
 * Balances, holds and spend of keys on the shared server. What the server lacks is filled in from
 * the database.
 */
export class SharedAccounts {
  private readonly readingUnderWay = new Map<string, Promise<void>>();
  private readonly readyRuns = new Map<LedgerPart, { id: string; ready: Promise<void> }>();

  constructor(private readonly options: SharedAccountsOptions) {
    if (options.epoch?.isFirst !== true) return;
    // A first epoch begins with this gateway, so no gateway has holds to report and no wait is
    // needed. The server counts the wait of later gateways from now.
    for (const part of this.parts) {
      this.readyRuns.set(part, { id: this.rootOf(part.runId ?? ""), ready: Promise.resolve() });
      this.runIn(part, runBegunScript, [0]).catch(() => this.readyRuns.delete(part));
    }
  }

  /** All parts of the shared state, each of which may be unavailable by itself. */
  get parts(): readonly LedgerPart[] {
    return this.options.shared.parts;
  }

  /** Returns the part that stores everything of a workspace. */
  partOf(workspaceId: string): LedgerPart {
    return this.options.shared.partOf(workspaceId);
  }

  /**
   * Runs a script that needs a workspace and keys. Where the server lacks them, fills them in from
   * the database and runs the script again.
   */
  async ask(
    script: SharedScript,
    workspaceId: string,
    values: readonly (string | number)[],
  ): Promise<LedgerAnswer> {
    for (let reading = 0; reading < readingsMax; reading += 1) {
      const [outcome = "", detail = "", ...rest] = await this.run(script, workspaceId, values);
      if (outcome !== "unknown") {
        const [monthly = "0", topup = "0", ...stale] = rest;
        return {
          outcome,
          detail,
          monthlyNano: BigInt(monthly),
          topupNano: BigInt(topup),
          stale: chargesOf(stale),
        };
      }
      const [missing = "[]", holds = "[]", ...charges] = rest;
      const held = (JSON.parse(holds) as string[]).flatMap((id) => [id, ""]);
      await this.fill(workspaceId, {
        mark: detail,
        missing,
        charges: chargesOf([...charges, ...held]),
      });
    }
    throw new SharedStateAwayError("the shared ledger forgets faster than it can be filled");
  }

  /** Runs a script that needs nothing filled in. */
  run(
    script: SharedScript,
    workspaceId: string,
    values: readonly (string | number)[],
  ): Promise<string[]> {
    return this.runIn(this.partOf(workspaceId), script, values, workspaceId);
  }

  /** Runs a script in a part. A script about the part itself names no workspace. */
  async runIn(
    part: LedgerPart,
    script: SharedScript,
    values: readonly (string | number)[],
    workspaceId = "",
  ): Promise<string[]> {
    const { leaseClockMs, nodeId } = this.options;
    const run = part.runId;
    if (run === undefined) throw new SharedStateAwayError("the shared ledger is away");
    const root = `${part.prefix}ledger:${this.rootOf(run)}:`;
    const common = [root, workspaceId, leaseClockMs?.() ?? 0, leaseMs, nodeId];
    return (await part.run(script, { keys: [], values: [...common, ...values] })) as string[];
  }

  /**
   * Returns an id of the server's run and the database's history, under which everything of a
   * workspace is stored; undefined while the server is unavailable.
   */
  eraOf(workspaceId: string): string | undefined {
    const { runId } = this.partOf(workspaceId);
    return runId === undefined ? undefined : this.rootOf(runId);
  }

  /** Fills in what the server lacks. Requests at the same time share one reading. */
  private fill(
    workspaceId: string,
    wanted: { mark: string; missing: string; charges: OpenCharge[] },
  ): Promise<void> {
    const name = `${workspaceId} ${wanted.missing}`;
    let reading = this.readingUnderWay.get(name);
    if (reading === undefined) {
      reading = this.readInto(workspaceId, wanted).finally(() => this.readingUnderWay.delete(name));
      this.readingUnderWay.set(name, reading);
    }
    return reading;
  }

  /** Reads a workspace's balances from the database, which needs no shared server. */
  durable(workspaceId: string): Promise<Balances> {
    return this.options.readings.balances(workspaceId);
  }

  private async readInto(
    workspaceId: string,
    { mark, missing, charges }: { mark: string; missing: string; charges: OpenCharge[] },
  ): Promise<void> {
    await this.untilRunIsReady(this.partOf(workspaceId));
    const names = JSON.parse(missing) as string[];
    const counters = names
      .filter((name) => name.startsWith(sumPrefix))
      .map((name) => name.slice(sumPrefix.length));
    if (counters.length > 0) await this.readSums(workspaceId, counters);
    if (counters.length === names.length) return;
    const keyIds = names.filter((name) => name !== "" && !name.startsWith(sumPrefix));
    const read = await this.options.readings.read(workspaceId, {
      keyIds,
      charges,
      nowMs: this.options.nowMs(),
    });
    const balances = [read.monthlyNano, read.topupNano, read.freshMonth, read.freshNano].join("|");
    const keys = read.keys.flatMap(({ id, hours }) => [id, JSON.stringify(hours)]);
    await this.run(seedScript, workspaceId, [
      mark,
      balances,
      JSON.stringify(read.included),
      ...keys,
    ]);
  }

  private async readSums(workspaceId: string, counters: readonly string[]): Promise<void> {
    const [mark = ""] = await this.run(beginSumsScript, workspaceId, []);
    const { sums, included } = await this.options.readings.readSums(workspaceId, {
      counters,
      charges: async () => chargesOf(await this.run(chargesSinceScript, workspaceId, [])),
    });
    const filled = counters.flatMap((counter, index) => [counter, String(sums[index])]);
    await this.run(seedSumsScript, workspaceId, [mark, JSON.stringify(included), ...filled]);
  }

  private rootOf(run: string): string {
    const { epoch } = this.options;
    return epoch === undefined ? run : `${run}:${epoch.id}`;
  }

  /** Waits until the database has the charges that gateways reported to an earlier run. */
  private untilRunIsReady(part: LedgerPart): Promise<void> {
    const id = this.rootOf(part.runId ?? "");
    const known = this.readyRuns.get(part);
    if (known?.id === id) return known.ready;
    const ready = this.waitForRun(part);
    this.readyRuns.set(part, { id, ready });
    ready.catch(() => this.readyRuns.delete(part));
    return ready;
  }

  private async waitForRun(part: LedgerPart): Promise<void> {
    const { graceMs = graceMsDefault } = this.options;
    if (graceMs === 0) return;
    const [leftMs = "0"] = await this.runIn(part, runBegunScript, [graceMs]);
    if (Number(leftMs) > 0) await delay(Number(leftMs));
  }
}

/** Converts a list that alternates ids and entries into charges; the entry of a hold is empty. */
function chargesOf(pairs: readonly string[]): OpenCharge[] {
  const charges: OpenCharge[] = [];
  for (let index = 0; index + 1 < pairs.length; index += 2) {
    const [monthly = "0", topup = "0"] = (pairs[index + 1] ?? "").split("|");
    charges.push({
      id: pairs[index] ?? "",
      monthlyNano: BigInt(monthly),
      topupNano: BigInt(topup),
    });
  }
  return charges;
}

import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../kernel/clock.ts";
import { randomBase62 } from "../kernel/ids.ts";
import {
  SharedStateAwayError,
  SharedStateMismatchError,
  SharedStateUnfitError,
} from "./shared-state-error.ts";
import type { ScriptCall, SharedPart, SharedParts, SharedStateLogger } from "./shared-state.ts";
import lookText from "./scripts/look-at-pairing.lua" with { type: "text" };
import type { SharedScript } from "./redis-client.ts";

/** The shared state that a database names as its own, for one part. */
export interface StateFact {
  /** The random word that the part carries as well. */
  state: string;
  /** The address of the server, for messages. */
  place: string;
}

/** What a database says about itself and about the shared state of its gateways. */
export interface DatabaseFacts {
  /** The identity of the database: another one for every copy of it. */
  identity: string;
  /** The shared state of each part, by the prefix of its keys. */
  states: ReadonlyMap<string, StateFact>;
}

/** The database's side of a pairing. */
export interface PairingFacts {
  read(): Promise<DatabaseFacts>;
  /** Returns the last beat of each gateway that counts as alive, by its id. */
  beats(): Promise<ReadonlyMap<string, number>>;
  /** Stores the shared state of a part. */
  write(prefix: string, fact: StateFact): Promise<void>;
  /** Runs work while no other gateway on the database starts, or does such work. */
  alone<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** The options of paired parts. */
export interface PairedPartsOptions {
  shared: Pick<SharedParts, "parts" | "partOf">;
  facts: PairingFacts;
  nodeId: string;
  /** The addresses of the server and of the database, for messages. */
  places: { shared: string; database: string };
  clock: Pick<Clock, "monotonicMs">;
  logger: SharedStateLogger;
}

const checkEveryMs = 1_000;
/** The pause before the next check where a part does not match. */
const checkAgainMs = 250;
/** The age of a check, in milliseconds, beyond which it is repeated before a part is used. */
const staleMs = 5_000;
/** How long a gateway counts as connected to a part without a check, in milliseconds. */
const memberMs = 5_000;
/** How long a part says to which database it belongs without a check, in milliseconds. */
const pairMs = 600_000;
/**
 * How long a start waits for a match, in milliseconds: the time in which a gateway that was killed
 * counts as alive, and a little more.
 */
const patienceMs = 10_000;
/** How long a start waits where a gateway that is alive uses other shared state. */
const patienceWithOthersMs = 3_000;

/**
 * Notes that a gateway is connected, and returns what the part says about its database. Keys: the
 * pairing, the gateways by the end of their time, the number of checks, and the run of the part.
 * Values: the gateway, its time, the time of the pairing, and the number of the gateway's last check in this
 * run. A part that counts fewer was set back, which ends its run for all gateways.
 */
const lookScript: SharedScript = {
  name: "switchyardPairing",
  lua: lookText,
};

/** The key under which a part names the database that it belongs to. */
export const pairingKey = "pairing";

/** What a part says about the database that it belongs to. */
export interface PairedWith {
  state: string;
  database: string;
  /** The address of the database, for messages. */
  name: string;
}

/** What a part was found to be. */
interface Look {
  part: PairedPart;
  run: string;
  paired: PairedWith | undefined;
  /** The gateways that are connected to it: the identity of the database, and the id. */
  members: ReadonlySet<string>;
}

/** What a part was found to be, and why it must not be used; undefined where it may. */
interface Judgement extends Look {
  mismatch: string | undefined;
}

/**
 * The parts of the shared state, as far as they belong to the gateway's database. Database and
 * shared state name each other, so that gateways on one database never use different servers. A
 * part that does not match counts as unavailable. A part that was emptied or replaced is paired
 * again once every gateway that is alive on the database is connected to it.
 */
export class PairedParts {
  readonly parts: readonly PairedPart[];
  private readonly options: PairedPartsOptions;
  private readonly byPart: ReadonlyMap<SharedPart, PairedPart>;
  private checking: Promise<void> | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStopped = false;
  private identity: string | undefined;
  private reported: string | undefined;
  private mismatchSinceMs: number | undefined;
  /** The gateways that use other shared state, and their last beats. */
  private others: ReadonlyMap<string, number> = new Map();

  private constructor(options: PairedPartsOptions) {
    this.options = options;
    const ensure = (): Promise<void> => this.check();
    this.parts = options.shared.parts.map((part) => new PairedPart(part, { ...options, ensure }));
    this.byPart = new Map(options.shared.parts.map((part, index) => [part, this.parts[index]!]));
  }

  /**
   * Pairs the parts with the database and watches them. Throws `SharedStateUnfitError` where they
   * belong to another database, or the database to other shared state that gateways use.
   */
  static async open(options: PairedPartsOptions): Promise<PairedParts> {
    const paired = new PairedParts(options);
    await paired.match();
    paired.parts.forEach((part) => part.start());
    paired.checkLater();
    return paired;
  }

  partOf(name: string): PairedPart {
    return this.byPart.get(this.options.shared.partOf(name))!;
  }

  /** Why a part does not match; undefined where every available part does. */
  get mismatch(): string | undefined {
    return this.parts.find(({ mismatch }) => mismatch !== undefined)?.mismatch;
  }

  /** Checks every available part against the database. */
  check(): Promise<void> {
    return (this.checking ??= this.compare().finally(() => (this.checking = undefined)));
  }

  /** Stops watching. */
  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await this.checking?.catch(() => undefined);
  }

  private async match(): Promise<void> {
    const { clock, logger } = this.options;
    const sinceMs = clock.monotonicMs();
    for (let before: ReadonlyMap<string, number> | undefined; ; ) {
      await this.check();
      const { mismatch } = this;
      if (mismatch === undefined) return;
      if (before === undefined) logger.warn({ reason: mismatch }, "waiting for the shared state");
      before ??= this.others;
      const waitedMs = clock.monotonicMs() - sinceMs;
      const areAlive = [...this.others].some(([id, beat]) => beat > (before?.get(id) ?? beat));
      if (waitedMs > (areAlive ? patienceWithOthersMs : patienceMs))
        throw new SharedStateUnfitError(mismatch);
      await delay(checkAgainMs);
    }
  }

  private checkLater(): void {
    if (this.isStopped) return;
    const isBrief = this.reported === undefined && this.mismatch !== undefined;
    const pauseMs = isBrief ? checkAgainMs : checkEveryMs;
    this.timer = setTimeout(() => {
      this.check()
        .catch((error: unknown) =>
          this.options.logger.warn({ err: error }, "the shared state could not be compared"),
        )
        .finally(() => this.checkLater());
    }, pauseMs);
  }

  private async compare(): Promise<void> {
    const { facts, clock } = this.options;
    const sentMs = clock.monotonicMs();
    const known = await facts.read().catch(async (error: unknown) => {
      // The gateway stays connected, as the other gateways see it.
      if (this.identity !== undefined) await this.look({ identity: this.identity });
      throw error;
    });
    this.identity = known.identity;
    const looks = await this.look(known);
    this.others = new Map();
    const judged = looks.every((each) => matches(known, each))
      ? looks.map((each) => ({ ...each, mismatch: undefined }))
      : await this.compareWithOthers(known, looks);
    for (const { part, ...judgement } of judged) part.judge({ ...judgement, sentMs });
    this.report();
  }

  /** Judges parts that do not all match, and pairs those that may be. */
  private async compareWithOthers(
    known: DatabaseFacts,
    looks: readonly Look[],
  ): Promise<Judgement[]> {
    const { facts } = this.options;
    const judgements = this.judge(known, { looks, beats: await facts.beats() });
    const canPair = judgements.some((each) => each.mismatch === undefined && !matches(known, each));
    if (!canPair) return judgements;
    return facts.alone(async () => {
      const now = await facts.read();
      const beats = await facts.beats();
      const judged = this.judge(now, { looks: await this.look(now), beats });
      for (const each of judged)
        if (each.mismatch === undefined && !matches(now, each)) await this.pair(each.part, now);
      return judged;
    });
  }

  /** Makes a part and the database name each other. */
  private async pair(part: PairedPart, { identity }: DatabaseFacts): Promise<void> {
    const { facts, places, logger } = this.options;
    const state = randomBase62(12);
    await facts.write(part.prefix, { state, place: places.shared });
    await part.put({ state, database: identity, name: places.database });
    logger.info({ place: places.shared }, "the shared state now belongs to the database");
  }

  /** Looks at the parts that are available. */
  private async look({ identity }: Pick<DatabaseFacts, "identity">): Promise<Look[]> {
    const looks = await Promise.all(this.parts.map((part) => part.look(identity)));
    return looks.filter((look) => look !== undefined);
  }

  private judge(
    known: DatabaseFacts,
    { looks, beats }: { looks: readonly Look[]; beats: ReadonlyMap<string, number> },
  ): Judgement[] {
    return looks.map((look) => ({ ...look, mismatch: this.mismatchOf(look, known, beats) }));
  }

  /** Returns why a part must not be used; undefined where it matches or can be paired. */
  private mismatchOf(
    look: Look,
    known: DatabaseFacts,
    beats: ReadonlyMap<string, number>,
  ): string | undefined {
    if (matches(known, look)) return undefined;
    const { places, nodeId } = this.options;
    const { identity, states } = known;
    const { paired: owner, members, part } = look;
    const isOthers =
      owner !== undefined &&
      owner.database !== identity &&
      members.values().some((member) => member.startsWith(`${owner.database} `));
    if (isOthers)
      return (
        `the Valkey or Redis at ${places.shared} serves the gateways of the database ${owner.name}, and this gateway's database is ` +
        `${places.database}: give each database its own, such as another number at the end of REDIS_URL`
      );
    const elsewhere = [...beats].filter(
      ([id]) => id !== nodeId && !members.has(`${identity} ${id}`),
    );
    this.others = new Map([...this.others, ...elsewhere]);
    if (elsewhere.length === 0) return undefined;
    const place = states.get(part.prefix)?.place ?? "another one";
    const gateways = elsewhere.length === 1 ? "1 other gateway" : `${elsewhere.length} others`;
    return (
      `this gateway's Valkey or Redis is ${places.shared}, and ${gateways} on the database ${places.database} ` +
      `do not use it (the database names ${place}): give all gateways the same REDIS_URL, or stop them all to move to another server`
    );
  }

  private report(): void {
    const { logger, clock } = this.options;
    const { mismatch } = this;
    const nowMs = clock.monotonicMs();
    this.mismatchSinceMs = mismatch === undefined ? undefined : (this.mismatchSinceMs ?? nowMs);
    if (mismatch === undefined && this.reported !== undefined) {
      logger.info({}, "the shared state belongs to the database again");
      this.reported = undefined;
    }
    // A part that was emptied does not match until all gateways have connected again.
    const isLasting = nowMs - (this.mismatchSinceMs ?? nowMs) >= 2 * checkEveryMs;
    if (mismatch === undefined || !isLasting || mismatch === this.reported) return;
    this.reported = mismatch;
    logger.warn({ reason: mismatch }, "paid requests are refused: the shared state does not match");
  }
}

/** Returns whether a part and the database name each other. */
const matches = ({ identity, states }: DatabaseFacts, { part, paired }: Look): boolean =>
  paired !== undefined &&
  paired.database === identity &&
  paired.state === states.get(part.prefix)?.state;

/** A part that is unavailable while it does not belong to the gateway's database. */
class PairedPart implements Pick<SharedPart, "prefix" | "runId" | "onRun" | "run"> {
  readonly prefix: string;
  private readonly options: Pick<PairedPartsOptions, "nodeId" | "clock"> & {
    ensure(): Promise<void>;
  };
  private readonly listeners = new Set<(runId: string) => void>();
  /** The run that belongs to the database. */
  private pairedRun: string | undefined;
  private checkedMs = -Infinity;
  private lastLook: { run: string; count: number } | undefined;
  /** Why the part does not match; undefined where it does, or is unavailable. */
  mismatch: string | undefined;

  constructor(
    private readonly part: SharedPart,
    options: Pick<PairedPartsOptions, "nodeId" | "clock"> & { ensure(): Promise<void> },
  ) {
    this.prefix = part.prefix;
    this.options = options;
  }

  get runId(): string | undefined {
    const { runId } = this.part;
    return runId === this.pairedRun ? runId : undefined;
  }

  onRun(listener: (runId: string) => void): () => void {
    this.listeners.add(listener);
    if (this.runId !== undefined) listener(this.runId);
    return () => void this.listeners.delete(listener);
  }

  /** Checks the part with every connection to its server, which may be another server than before. */
  start(): void {
    let isFirst = true;
    this.part.onRun(() => {
      if (isFirst && this.runId !== undefined) return;
      this.pairedRun = undefined;
      this.options.ensure().catch(() => undefined);
    });
    isFirst = false;
  }

  async run(script: SharedScript, call: ScriptCall): Promise<unknown> {
    if (this.runId === undefined)
      throw new SharedStateAwayError("the shared state is unavailable or not compared yet");
    return this.part.run(script, call);
  }

  /**
   * Resolves once a recent check says whether the part matches; undefined where the last one is
   * recent. Rejects with `SharedStateMismatchError` where it does not match, and with
   * `SharedStateAwayError` where the database cannot be asked.
   */
  untilSure(): Promise<void> | undefined {
    if (this.mismatch !== undefined)
      return Promise.reject(new SharedStateMismatchError(this.mismatch));
    if (this.options.clock.monotonicMs() - this.checkedMs <= staleMs) return undefined;
    return this.options.ensure().catch((error: unknown) => {
      throw new SharedStateAwayError("the shared state cannot be compared with the database", {
        cause: error,
      });
    });
  }

  /** Reads what the part says about its database; undefined while it is unavailable. */
  async look(identity: string): Promise<Look | undefined> {
    const run = this.part.runId;
    if (run === undefined) return undefined;
    const seen = this.lastLook?.run === run ? this.lastLook.count : 0;
    try {
      const answer = (await this.part.run(lookScript, {
        keys: [pairingKey, "pairing-members", "pairing-checks", "run"],
        values: [`${identity} ${this.options.nodeId}`, memberMs, pairMs, seen],
      })) as [number, string, ...string[]];
      const [count, text = "", ...members] = answer;
      if (count === 0 || this.part.runId !== run) return undefined;
      this.lastLook = { run, count };
      const paired = text === "" ? undefined : (JSON.parse(text) as PairedWith);
      return { part: this, run, paired, members: new Set(members) };
    } catch (error) {
      if (error instanceof SharedStateAwayError) return undefined;
      throw error;
    }
  }

  /** Stores the database that the part belongs to. */
  async put(paired: PairedWith): Promise<void> {
    await this.part.set(pairingKey, JSON.stringify(paired), pairMs);
  }

  /** Makes the part available where it matches, and unavailable where it does not. */
  judge({ run, sentMs, mismatch }: Omit<Judgement, "part"> & { sentMs: number }): void {
    this.mismatch = mismatch;
    if (this.part.runId !== run) return;
    this.checkedMs = sentMs;
    const before = this.pairedRun;
    this.pairedRun = mismatch === undefined ? run : undefined;
    if (this.pairedRun === undefined || before === run) return;
    for (const listener of this.listeners) listener(run);
  }
}

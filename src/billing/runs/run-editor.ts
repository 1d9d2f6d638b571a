import {
  creatorIdOf,
  spendingKeyOf,
  type AccountCaller,
  type LlmKeyCaller,
} from "../../identity/keys/caller.ts";
import type { CredentialDirectory } from "../../identity/keys/credential-directory.ts";
import {
  closureOf,
  parentRunIdOf,
  runLifetimeMsMax,
  type Run,
  type RunDegrade,
  type RunLoopGuard,
} from "../../identity/keys/run.ts";
import { maskSecret, newSecret, type SecretHasher } from "../../identity/keys/secret-hasher.ts";
import { brand } from "../../platform/kernel/brand.ts";
import { dayMs, type Clock } from "../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId, newId } from "../../platform/kernel/ids.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import { usdFromNano, usdText } from "../../platform/kernel/money.ts";
import type { Allocation, AllocationOutcome } from "../allocations/book-allocations.ts";
import type { SpendingKey } from "../ledger/hold-rule.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import type { RunReleases } from "./run-releases.ts";
import type { RunStore } from "./run-store.ts";

/** The levels of runs that a key may nest, where its first run names no fewer. */
const depthDefault = 5;
/** How long a run that requests join by name lasts, where they name no shorter time. */
const joinedLifetimeMs = dayMs;

/** The fields of a new run that its creator sets. */
export interface NewRun {
  name: string;
  /** Undefined takes the most that the key may open on the fly. */
  limitNano: bigint | undefined;
  maxRequests: number | null;
  maxDepth: number | undefined;
  expiresInMs: number | undefined;
  degrade?: RunDegrade | undefined;
  loopGuard?: RunLoopGuard | undefined;
}

/** What a run is carved out of, with the bounds that it passes on. */
interface RunOwner extends Pick<Run, "ownerId" | "rootId" | "workspaceId" | "creatorUserId"> {
  keys: readonly [SpendingKey, ...SpendingKey[]];
  depth: number;
  maxDepth: number;
  maxRequests: number | null;
  expiresAtMs: number | null;
  /** The most money of one run; null means no bound beside the owner's own. */
  runLimitNano: bigint | null;
}

/** The callers that may open runs. */
export type RunOpener = LlmKeyCaller | AccountCaller;

interface RunEditorOptions {
  store: RunStore;
  directory: CredentialDirectory;
  hasher: SecretHasher;
  ledger: Pick<LedgerPort, "allocations">;
  releases: RunReleases;
  clock: Clock;
  /** Called with a run that was changed, so that other gateways read it again. */
  onChange(run: Run): void;
}

const noRun = (): GatewayError =>
  new GatewayError("not_found", "There is no run with this id. GET /runs lists them.");

/** Opens, joins, changes and ends runs. */
export class RunEditor {
  private readonly mutex = new KeyedMutex();

  constructor(private readonly options: RunEditorOptions) {}

  /**
   * Opens a run. Its limit is carved out of the caller's atomically. Throws `bad_request`,
   * `forbidden` where no further level may be nested, and `insufficient_balance` where less is left.
   */
  async open(
    caller: RunOpener,
    wanted: NewRun,
    joinedName?: string,
  ): Promise<{ run: Run; secret: string }> {
    const owner = this.ownerOf(caller);
    const limitNano = limitOf(owner, wanted);
    assertWithin(owner, wanted);
    const nowMs = this.options.clock.nowMs();
    const secret = newSecret(runSecretPrefix);
    const lifetimeMs = wanted.expiresInMs ?? (joinedName ? joinedLifetimeMs : runLifetimeMsMax);
    const run: Run = {
      id: newId("run", nowMs),
      workspaceId: owner.workspaceId,
      ownerId: owner.ownerId,
      rootId: owner.rootId,
      name: wanted.name,
      joinedName,
      hash: this.options.hasher.hash(secret),
      label: maskSecret(secret, brand.llmKeyPrefix),
      limitNano,
      maxRequests: wanted.maxRequests,
      depth: owner.depth,
      maxDepth: Math.min(wanted.maxDepth ?? owner.maxDepth, owner.maxDepth),
      expiresAtMs: Math.min(nowMs + lifetimeMs, owner.expiresAtMs ?? Number.POSITIVE_INFINITY),
      degrade: wanted.degrade,
      loopGuard: wanted.loopGuard,
      paused: false,
      version: 1,
      creatorUserId: owner.creatorUserId,
      createdAtMs: nowMs,
      updatedAtMs: null,
      endedAtMs: null,
      releasedAtMs: null,
      settledNano: 0n,
      settledByokNano: 0n,
      alertedPercent: 0,
    };
    await this.allocating(run, { owner, amountNano: limitNano, version: 1 }, async () => {
      await this.options.store.insert(run);
      return run;
    });
    this.options.directory.putRun(run);
    await this.assertNotWithinEnded(run);
    return { run, secret };
  }

  /** Ends a new run again where the run around it ended meanwhile. Throws `conflict` then. */
  private async assertNotWithinEnded(run: Run): Promise<void> {
    const outerId = parentRunIdOf(run);
    const outer = outerId === undefined ? undefined : await this.options.store.find(outerId);
    if (outer === undefined || outer.endedAtMs === null) return;
    await this.end(run);
    throw new GatewayError("conflict", "The run around this one has ended. Open another one.");
  }

  /**
   * Returns the run that requests of a caller join by a name, and opens it where there is none.
   * Throws as `open` does.
   */
  join(caller: LlmKeyCaller, wanted: NewRun): Promise<Run> {
    const { ownerId } = this.ownerOf(caller);
    const { store, directory, clock } = this.options;
    const { name } = wanted;
    return this.mutex.run(`${ownerId} ${name}`, async () => {
      const find = () => store.findJoined(ownerId, { name, nowMs: clock.nowMs() });
      const found = directory.joinedRun(ownerId, name) ?? (await find());
      if (found !== undefined && found.expiresAtMs > clock.nowMs()) {
        directory.putRun(found);
        return found;
      }
      try {
        return (await this.open(caller, wanted, name)).run;
      } catch (error) {
        // Another gateway may have opened it at the same time.
        const other = error instanceof GatewayError ? undefined : await find();
        if (other === undefined) throw error;
        directory.putRun(other);
        return other;
      }
    });
  }

  /** Returns a run of a workspace. Throws `not_found`. */
  async find({ workspaceId, id }: { workspaceId: string; id: string }): Promise<Run> {
    const run = mayBeId(id) ? await this.options.store.find(id) : undefined;
    if (run === undefined || run.workspaceId !== workspaceId) throw noRun();
    return run;
  }

  /**
   * Changes the limit of a run. More is carved out of its owner, atomically; less goes back to it.
   * Throws `conflict` for ended runs and for less than is spent, and `insufficient_balance`.
   */
  setLimit(run: Run, limitNano: bigint): Promise<Run> {
    return this.changing(run, async (current) => {
      const deltaNano = limitNano - current.limitNano;
      if (deltaNano === 0n) return current;
      const version = current.version + 1;
      const change = async (): Promise<Run> => {
        const changed = await this.options.store.change(
          current,
          { limitNano, version, alertedPercent: 0 },
          this.options.clock.nowMs(),
        );
        if (changed === undefined) throw changedMeanwhile();
        return changed;
      };
      const owner = this.ownerOfRun(current);
      if (deltaNano > 0n)
        return this.allocating(current, { owner, amountNano: deltaNano, version }, change);
      const changed = await this.withoutPart(current, -deltaNano, change);
      await this.options.ledger.allocations.release({
        workspaceId: current.workspaceId,
        keys: owner.keys,
        amountNano: -deltaNano,
        spentNano: 0n,
        byokNano: 0n,
      });
      return changed;
    });
  }

  /** Pauses a run, or lets it go on. Throws `conflict` for ended runs. */
  setPaused(run: Run, paused: boolean): Promise<Run> {
    return this.changing(run, async (current) => {
      if (current.paused === paused) return current;
      const { store, clock } = this.options;
      const changed = await store.change(current, { paused }, clock.nowMs());
      if (changed === undefined) throw changedMeanwhile();
      return changed;
    });
  }

  /** Ends a run with every run in it. What they left goes back once their last request is settled. */
  async end(run: Run): Promise<Run> {
    const ended = await this.mutex.run(run.id, () =>
      this.options.store.end(run.id, this.options.clock.nowMs()),
    );
    await this.options.releases.ended(ended);
    for (const each of ended) this.options.onChange(each);
    return this.find(run);
  }

  /** Returns a run from memory, or from the database where another gateway opened it. */
  async current(id: string): Promise<Run | undefined> {
    const known = this.options.directory.runCaller(id)?.run;
    if (known !== undefined) return known;
    const run = await this.options.store.find(id);
    if (run !== undefined) this.options.directory.putRun(run);
    return run;
  }

  /** Returns a run and the runs around it, innermost first. */
  async chainOf(run: Run): Promise<readonly Run[]> {
    const parentId = parentRunIdOf(run);
    if (parentId === undefined) return [run];
    const parent = await this.current(parentId);
    return parent === undefined ? [run] : [run, ...(await this.chainOf(parent))];
  }

  /**
   * Puts the run of a secret in force that another gateway opened; undefined where the secret is no
   * run's.
   */
  async learn(secret: string): Promise<Run | undefined> {
    if (!secret.startsWith(runSecretPrefix)) return undefined;
    const run = await this.options.store.findByHash(this.options.hasher.hash(secret));
    if (run !== undefined) this.options.directory.putRun(run);
    return run;
  }

  private changing(run: Run, change: (current: Run) => Promise<Run>): Promise<Run> {
    return this.mutex.run(run.id, async () => {
      const current = await this.find(run);
      const { clock, directory, onChange } = this.options;
      const closure = closureOf(current, clock.nowMs());
      if (closure === "ended" || closure === "expired")
        throw new GatewayError("conflict", `This run has ${closure}. Open another one.`);
      const changed = await change(current);
      directory.putRun(changed);
      onChange(changed);
      return changed;
    });
  }

  /** Sets an amount aside at the owner of a run, and gives it back where the write fails. */
  private async allocating(
    run: Run,
    { owner, amountNano, version }: { owner: RunOwner; amountNano: bigint; version: number },
    write: () => Promise<Run>,
  ): Promise<Run> {
    const { ledger, store } = this.options;
    const allocation = {
      id: `${run.id}.${version}`,
      workspaceId: owner.workspaceId,
      keys: owner.keys,
      amountNano,
      spentByRunsNano: 0n,
    };
    let outcome = await ledger.allocations.allocate(allocation);
    if (!outcome.ok && outcome.reason === "insufficient_balance") {
      // What open runs have spent is summed only where the balance would not do without it.
      const spentByRunsNano = await store.spentByOpenRuns(owner.ownerId);
      outcome = await ledger.allocations.allocate({ ...allocation, spentByRunsNano });
    }
    if (!outcome.ok) throw refusal(outcome, amountNano);
    let written: Run;
    try {
      written = await write();
    } catch (error) {
      ledger.allocations.undo(allocation);
      throw error;
    }
    await ledger.allocations.committed(allocation);
    return written;
  }

  /**
   * Lowers the limit of a run while the part that it loses is set aside in the run, so that none of
   * its requests takes that. Throws `conflict` where less is left.
   */
  private async withoutPart(run: Run, amountNano: bigint, lower: () => Promise<Run>): Promise<Run> {
    const { directory, ledger } = this.options;
    const caller = directory.runCaller(run.id);
    if (caller === undefined) throw noRun();
    const part: Allocation = {
      // No run has this version, so that no reading takes it for a run's allocation.
      id: `${run.id}.${newId("part", this.options.clock.nowMs())}`,
      workspaceId: run.workspaceId,
      keys: [spendingKeyOf(caller.key)],
      amountNano,
      spentByRunsNano: 0n,
    };
    const outcome = await ledger.allocations.allocate(part);
    if (!outcome.ok && outcome.reason === "away") throw refusal(outcome, amountNano);
    if (!outcome.ok)
      throw new GatewayError(
        "conflict",
        `limit: ${usdText(run.limitNano - outcome.freeNano)} USD of this run are spent, held or set aside for runs in it. Name no less.`,
        { param: "limit" },
      );
    try {
      const lowered = await lower();
      directory.putRun(lowered);
      return lowered;
    } finally {
      ledger.allocations.undo(part);
    }
  }

  private ownerOf(caller: RunOpener): RunOwner {
    if (caller.kind === "session" || caller.kind === "management-key") {
      const { id } = caller.workspace;
      return {
        ...ownerDefaults,
        ownerId: id,
        rootId: id,
        workspaceId: id,
        creatorUserId: creatorIdOf(caller),
        keys: [{ keyId: id, keyLimit: null }],
      };
    }
    const { key, workspace } = caller;
    const { parent, run }: Pick<LlmKeyCaller, "parent" | "run"> =
      caller.kind === "llm-key" ? caller : {};
    const common = { workspaceId: workspace.id, creatorUserId: key.creatorUserId };
    if (run === undefined)
      return {
        ...ownerDefaults,
        ...common,
        ownerId: key.id,
        rootId: key.id,
        keys:
          parent === undefined ? [spendingKeyOf(key)] : [spendingKeyOf(key), spendingKeyOf(parent)],
        expiresAtMs: earliest(key.expiresAtMs, parent?.expiresAtMs ?? null),
        runLimitNano: key.runLimitNano ?? null,
      };
    if (run.maxDepth <= 0)
      throw new GatewayError(
        "forbidden",
        `This run may have no runs in it: its max_depth is reached at depth ${run.depth}.`,
        { metadata: { reason: "max_depth_reached", depth: run.depth } },
      );
    return {
      ...common,
      ownerId: run.id,
      rootId: run.rootId,
      keys: [spendingKeyOf(key)],
      depth: run.depth + 1,
      maxDepth: run.maxDepth - 1,
      maxRequests: run.maxRequests,
      expiresAtMs: run.expiresAtMs,
      runLimitNano: null,
    };
  }

  /** Returns what an open run was carved out of. Throws `conflict` where that is gone. */
  private ownerOfRun(run: Run): RunOwner {
    const { directory } = this.options;
    const { workspaceId, creatorUserId, ownerId, rootId } = run;
    const common = { ...ownerDefaults, workspaceId, creatorUserId, ownerId, rootId };
    if (ownerId === workspaceId) return { ...common, keys: [{ keyId: ownerId, keyLimit: null }] };
    const key = directory.runCaller(ownerId)?.key ?? directory.llmKeyById(ownerId);
    if (key === undefined)
      throw new GatewayError("conflict", "The key that this run was made with was deleted.");
    const parent = directory.llmKeyById(key.parentKeyId ?? "");
    return {
      ...common,
      keys:
        parent === undefined ? [spendingKeyOf(key)] : [spendingKeyOf(key), spendingKeyOf(parent)],
    };
  }

  /** Returns the limits that hold the limit of a run, for its release. */
  ownerKeysOf(run: Run): readonly [SpendingKey, ...SpendingKey[]] {
    const key = this.options.directory.llmKeyById(run.ownerId);
    const own: SpendingKey = { keyId: run.ownerId, keyLimit: null };
    return key?.parentKeyId === undefined
      ? [own]
      : [own, { keyId: key.parentKeyId, keyLimit: null }];
  }
}

/** The prefix of the secrets of runs, by which gateways know which ones to look up. */
export const runSecretPrefix = `${brand.llmKeyPrefix}run`;

const ownerDefaults = {
  depth: 0,
  maxDepth: depthDefault,
  maxRequests: null,
  expiresAtMs: null,
  runLimitNano: null,
} as const;

const earliest = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other);

const changedMeanwhile = (): GatewayError =>
  new GatewayError("conflict", "This run was changed or ended meanwhile. Read it again.");

/** Returns the limit of a new run. Throws `bad_request` where it names none or too much. */
function limitOf({ runLimitNano }: RunOwner, { limitNano }: NewRun): bigint {
  const limit = limitNano ?? runLimitNano ?? undefined;
  if (limit === undefined)
    throw badField(
      "limit",
      "is required to open a run, as in `name; limit=0.05`: this key has no run_limit",
    );
  if (runLimitNano !== null && limit > runLimitNano)
    throw badField(
      "limit",
      `must stay within the run_limit of this key: ${usdFromNano(runLimitNano)} USD`,
    );
  return limit;
}

function assertWithin(owner: RunOwner, { maxRequests, maxDepth }: NewRun): void {
  if (owner.maxRequests !== null && maxRequests !== null && maxRequests > owner.maxRequests)
    throw badField(
      "max_requests",
      `must stay within that of the run around it: ${owner.maxRequests}`,
    );
  if (owner.depth > 0 && maxDepth !== undefined && maxDepth > owner.maxDepth)
    throw badField("max_depth", `must stay within that of the run around it: ${owner.maxDepth}`);
}

function refusal(outcome: AllocationOutcome & { ok: false }, amountNano: bigint): GatewayError {
  if (outcome.reason === "away")
    return new GatewayError(
      "service_unavailable",
      "The gateway cannot see what other requests hold at the moment. Try again in a few seconds.",
      { retryAfterSeconds: 2 },
    );
  const freeNano = outcome.freeNano < 0n ? 0n : outcome.freeNano;
  const isKey = outcome.reason === "key_limit";
  return new GatewayError(
    "insufficient_balance",
    `The run needs ${usdText(amountNano)} USD, and ${usdText(freeNano)} USD is left of ` +
      `${isKey ? "the limit that it is carved out of" : "the balance"}. Name a lower limit, or end other runs.`,
    {
      param: "limit",
      metadata: {
        reason: isKey ? "key_limit_reached" : "balance_too_low",
        wanted_usd: usdFromNano(amountNano),
        available_usd: usdFromNano(freeNano),
        held_usd: usdFromNano(outcome.heldNano),
      },
    },
  );
}

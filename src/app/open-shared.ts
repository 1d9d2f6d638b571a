import { type Kysely, sql } from "kysely";
import type { RateCounters } from "../access/count-request.ts";
import { type PastRequests, RateLimiter } from "../access/rate-limiter.ts";
import type { RateTiers } from "../access/rate-tiers.ts";
import { rateClassOf } from "../endpoints/inference/read-call.ts";
import { SharedRateLimiter } from "../access/shared-rate-limiter.ts";
import { loadProviderKeyUsage } from "../byok/provider-key-usage.ts";
import { SharedKeyUsage } from "../byok/shared-key-usage.ts";
import type { CredentialDirectory } from "../identity/keys/credential-directory.ts";
import type { SessionPlace, SharedPlaces } from "../inference/routing/sticky-sessions.ts";
import {
  type AnswerCache,
  openAnswerCache,
} from "../inference/surfaces/embeddings/answer-cache.ts";
import type { SmokePort } from "../insights/health/smoke-tests.ts";
import { type GenerationTables, lowestIdAt } from "../insights/generation-record.ts";
import { type Clock, minuteMs } from "../platform/kernel/clock.ts";
import { randomBase62 } from "../platform/kernel/ids.ts";
import { openSharedState } from "../platform/shared-state/open-shared-state.ts";
import { PairedParts } from "../platform/shared-state/paired-parts.ts";
import { keepScript, runKeptMs } from "../platform/shared-state/run-guard.ts";
import { SharedChannel } from "../platform/shared-state/shared-channel.ts";
import { type Leases, SharedLeases } from "../platform/shared-state/shared-leases.ts";
import type { SharedPart, SharedParts } from "../platform/shared-state/shared-state.ts";
import { SharedTurns } from "../platform/shared-state/shared-turns.ts";
import { SharedValues } from "../platform/shared-state/shared-values.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import { DatabaseEpoch, type GatewayTables } from "../platform/storage/database-epoch.ts";
import { DatabasePairing } from "./database-pairing.ts";
import type { Storage } from "../platform/storage/storage.ts";
import { withTables } from "../platform/storage/with-tables.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import type { AppSettings } from "./settings-of.ts";
import type { Account, AccountTables } from "./open-account.ts";
import { type ChangeTables, type SharedChanges, openSharedChanges } from "./shared-changes.ts";
import type { KeptAnswer } from "../inference/surfaces/embeddings/memory-answer-store.ts";

/** The most bytes of answers that several gateways store together. */
const sharedAnswerBytesMax = 256 * 1024 * 1024;

/**
 * The most bytes of sessions that several gateways store together: some hundred thousand sessions.
 */
const sharedSessionBytesMax = 32 * 1024 * 1024;

/** Work that one of several gateways does, such as retention and background responses. */
export interface SharedWork {
  leases: Leases | undefined;
  isLeader: (() => boolean) | undefined;
}

/** The server that several gateways share, and the features of this gateway that use it. */
export interface Shared {
  nodeId: string;
  state: SharedParts;
  channel: SharedChannel;
  leases: SharedLeases;
  /** The epoch of the database; absent where no other gateway may use the database. */
  epoch?: DatabaseEpoch;
  /**
   * The state as far as it belongs to the database; absent where no other gateway may use the
   * database.
   */
  paired?: PairedParts;
  /** Keeps the run of the state while this gateway runs. */
  keeper: ReturnType<typeof setInterval>;
  /** Shares changes of workspaces; absent where no other gateway needs them. */
  changes?: SharedChanges;
  /** Shares the usage of callers' own provider keys; absent where no other gateway needs it. */
  keyUsage?: SharedKeyUsage;
}

/**
 * Returns whether other gateways may work on the same database. Only then are holds shared. An
 * embedded database belongs to one process.
 */
export const hasSeveralGateways = ({
  sharedUrl,
  storageUrl,
}: Pick<AppSettings, "sharedUrl" | "storageUrl">): boolean =>
  sharedUrl !== undefined && !storageUrl.startsWith("sqlite:");

/**
 * Returns the share of the gateways' shared state that is available, from 0 to 1; undefined where
 * there is none. A part of a cluster may be unavailable while the others serve.
 */
export const sharedProbe = (
  shared: Shared | undefined,
  settings: Pick<AppSettings, "sharedUrl" | "storageUrl">,
): (() => number) | undefined =>
  shared !== undefined && hasSeveralGateways(settings)
    ? () => shareUp((shared.paired ?? shared.state).parts)
    : undefined;

const shareUp = (parts: readonly Pick<SharedPart, "runId">[]): number =>
  parts.filter(({ runId }) => runId !== undefined).length / parts.length;

/**
 * Returns the work that one of several gateways does; its leases are undefined where there is only
 * one.
 */
export function shareWork(
  shared: Shared | undefined,
  settings: Pick<AppSettings, "sharedUrl" | "storageUrl">,
): SharedWork {
  if (shared === undefined || !hasSeveralGateways(settings))
    return { leases: undefined, isLeader: undefined };
  const { leases } = shared;
  return { leases, isLeader: () => leases.isLeading };
}

/** Returns a smoke port that calls providers only on the leading gateway. */
export const whileLeading = (
  { providerIds, ask }: SmokePort,
  { isLeader }: SharedWork,
): SmokePort => ({
  providerIds: () => (isLeader?.() === false ? [] : providerIds()),
  onDemandIds: providerIds,
  ask,
});

/**
 * Connects to the server of shared state; undefined where all state is in the memory of this
 * process.
 */
export async function openShared(
  {
    sharedUrl: url,
    sharedSentinels: sentinels,
    waitMs,
    extraCertificates: certificates,
  }: Pick<AppSettings, "sharedUrl" | "sharedSentinels" | "waitMs" | "extraCertificates">,
  { logger, clock }: { logger: Logger; clock: Clock },
): Promise<Shared | undefined> {
  if (url === undefined) return undefined;
  const state = await openSharedState({ url, sentinels, certificates, logger, waitMs });
  const nodeId = randomBase62(12);
  const channel = await SharedChannel.open({
    url,
    sentinels,
    certificates,
    shared: state,
    nodeId,
    logger,
  });
  const leases = new SharedLeases({
    shared: state,
    nodeId,
    clock,
    onError: (error) => logger.error({ err: error }, "a lease of background work was not renewed"),
  });
  leases.start();
  const keeper = setInterval(() => keepRuns(state), keepEveryMs).unref();
  return { nodeId, state, channel, leases, keeper };
}

const keepEveryMs = 3_600_000;
/** The mark of windows of hours that were restored. */
const hoursRestored = "hours-restored";

/** Keeps the runs of all parts. A part that is unavailable has lost its run or is kept later. */
function keepRuns({ parts }: Pick<SharedParts, "parts">): void {
  const keys = ["run", hoursRestored];
  for (const part of parts) part.run(keepScript, { keys, values: [] }).catch(() => undefined);
}

/**
 * Opens the epoch of the shared database and watches its changes, and pairs the shared state with
 * the database.
 */
export async function openEpoch(
  shared: Shared | undefined,
  settings: Pick<AppSettings, "sharedUrl" | "sharedSentinels" | "storageUrl">,
  { storage, clock, logger }: { storage: Storage<GatewayTables>; clock: Clock; logger: Logger },
): Promise<void> {
  if (shared === undefined || !hasSeveralGateways(settings)) return;
  const epoch = await DatabaseEpoch.open({
    storage,
    database: withTables(storage.database),
    nodeId: shared.nodeId,
    onSetBack: () =>
      logger.error(
        {},
        "the database was restored to an earlier state: shared data is read from it again",
      ),
    onError: (error) =>
      logger.warn(
        { err: error },
        "it could not be checked whether the database was restored to an earlier state",
      ),
  });
  shared.epoch = epoch;
  const { channel } = shared;
  epoch.onChange(() => {
    logger.warn({ epoch: epoch.id }, "the database has another epoch");
    channel.publish("epoch", epoch.id);
  });
  channel.on("epoch", (id) => void (id === epoch.id ? undefined : epoch.beat()));
  shared.paired = await PairedParts.open({
    shared: shared.state,
    facts: new DatabasePairing({ storage, database: withTables(storage.database) }),
    nodeId: shared.nodeId,
    places: placesOf(settings),
    clock,
    logger,
  });
}

/** Returns the addresses of the shared state and of the database, without logins. */
export function placesOf({
  sharedUrl = "",
  sharedSentinels = [],
  storageUrl,
}: Pick<AppSettings, "sharedUrl" | "sharedSentinels" | "storageUrl">): {
  shared: string;
  database: string;
} {
  const placeOf = (url: string): string => {
    const { host, pathname } = new URL(url);
    return host + pathname.replace(/\/$/, "");
  };
  const named = sharedSentinels.map((url) => new URL(url).host).join(", ");
  const shared = placeOf(sharedUrl);
  return {
    shared: named === "" ? shared : `${shared} as ${named} name it`,
    database: placeOf(storageUrl),
  };
}

/**
 * Opens the rate windows, which are shared where there is a server for it. Windows of hours restore
 * their counts: those in memory with every start, shared ones once after the server has lost them,
 * by the first gateway to notice.
 */
export async function openCounters(
  shared: Shared | undefined,
  parts: {
    tiers: RateTiers;
    clock: Clock;
    database: Kysely<GenerationTables>;
    directory: CredentialDirectory;
    logger: Logger;
  },
): Promise<RateCounters> {
  const { tiers, directory, clock, database, logger } = parts;
  const ownWindows = new RateLimiter(clock);
  if (shared === undefined) {
    const counters = { limiter: ownWindows, tiers };
    await restoreQuotas(database, { counters, directory, clock });
    return counters;
  }
  const { state } = shared;
  const counters = { limiter: new SharedRateLimiter({ shared: state, ownWindows, clock }), tiers };
  for (const part of state.parts) {
    const isCounted = (workspaceId: string): boolean => state.partOf(workspaceId) === part;
    part.onRun(() => {
      // The marker is stored beside the windows, so that both are lost together: a server that lost
      // its data has neither, and a replica has both.
      part
        .setIfAbsent(hoursRestored, "", runKeptMs)
        .then((isFirst) =>
          isFirst ? restoreQuotas(database, { counters, directory, clock, isCounted }) : undefined,
        )
        .catch((error: unknown) =>
          logger.warn(
            { err: error },
            "rate windows of hours could not be restored from the records",
          ),
        );
    });
  }
  return counters;
}

/**
 * Makes this gateway's changes take effect in the others on its database, and theirs in this one.
 */
export function shareChanges(
  shared: Shared | undefined,
  account: Account,
  {
    database,
    clock,
    logger,
  }: { database: Kysely<AccountTables & ChangeTables>; clock: Clock; logger: Logger },
): void {
  if (shared === undefined) return;
  shared.changes = openSharedChanges(account, {
    database,
    clock,
    channel: shared.channel,
    onError: (error) =>
      logger.error({ err: error }, "changes could not be exchanged with other gateways yet"),
  });
}

/** Makes quotas of callers' own provider keys include what other gateways use. */
export function shareKeyUsage(
  shared: Shared | undefined,
  { providerKeyUsage: usage }: Account,
  {
    database,
    commits,
    clock,
    logger,
  }: { database: Kysely<AccountTables>; commits: CommitQueue; clock: Clock; logger: Logger },
): void {
  if (shared === undefined) return;
  shared.keyUsage = new SharedKeyUsage({
    usage,
    clock,
    channel: shared.channel,
    nodeId: shared.nodeId,
    async reload() {
      await commits.flush();
      await loadProviderKeyUsage(withTables(database), usage);
    },
    onError: (error) =>
      logger.error(
        { err: error },
        "the use of provider keys by other gateways could not be read yet",
      ),
  });
  shared.keyUsage.start();
}

/** Stops sharing, once this gateway's changes were sent to the others. */
export async function stopSharing(
  shared: Shared | undefined,
  { ledger }: Pick<Account, "ledger">,
): Promise<void> {
  await ledger.stop();
  shared?.leases.stop();
  await shared?.paired?.stop();
  await shared?.epoch?.stop();
  shared?.keyUsage?.stop();
  await shared?.changes?.stop();
}

/** Closes the connections to the server. */
export function closeShared(shared: Shared | undefined): void {
  clearInterval(shared?.keeper);
  shared?.channel.close();
  shared?.state.close();
}

/** Returns where sessions were last served, where several gateways share it. */
export const openSessionPlaces = (shared: Shared | undefined): SharedPlaces | undefined =>
  shared &&
  new SharedValues<SessionPlace>({
    shared: shared.state,
    name: "sessions",
    bytesMax: sharedSessionBytesMax,
  });

/** Opens the cache of embeddings, which is shared where there is a server for it. */
export function openEmbeddingCache(shared: Shared | undefined, clock: Clock): AnswerCache {
  if (shared === undefined) return openAnswerCache(clock);
  const values = {
    shared: shared.state,
    name: "embedding-answers",
    bytesMax: sharedAnswerBytesMax,
  };
  const { leases, channel } = shared;
  const turns = new SharedTurns({ leases, channel, name: "embeddings" });
  return openAnswerCache(clock, new SharedValues<KeptAnswer>(values), turns);
}

/** The most workspaces in one query, below what either database can bind. */
const workspacesPerQuery = 500;

/** The surfaces whose requests no window of hours counts. */
const uncountedSurfaces = ["decisions"];

/**
 * Restores the counts of the windows of hours from the generation records, after the process ended:
 * each request in its minute, which is what a window distinguishes.
 */
async function restoreQuotas(
  database: Kysely<GenerationTables>,
  {
    counters: { limiter, tiers },
    directory,
    clock,
    isCounted = () => true,
  }: {
    counters: RateCounters;
    directory: CredentialDirectory;
    clock: Clock;
    /** Returns whether to restore a workspace's windows; absent means all. */
    isCounted?: (workspaceId: string) => boolean;
  },
): Promise<void> {
  const limited = directory.allWorkspaces().flatMap(({ id, plan }) => {
    const quota = tiers.quotaFor(plan, "paid");
    return quota === undefined || !isCounted(id) ? [] : [{ id, quota }];
  });
  const longestSeconds = Math.max(0, ...limited.map(({ quota }) => quota.windowSeconds));
  const firstMinute = Math.floor(clock.nowMs() / minuteMs) - longestSeconds / 60;
  const past: PastRequests[] = [];
  for (let start = 0; start < limited.length; start += workspacesPerQuery) {
    const ids = limited.slice(start, start + workspacesPerQuery).map(({ id }) => id);
    const minute = sql<number>`created_at_ms / ${sql.lit(minuteMs)}`;
    const rows = await database
      .selectFrom("generations")
      .select(({ fn }) => [
        "workspace_id",
        "requested_model",
        fn.max("created_at_ms").as("last_ms"),
        fn.countAll<number | bigint | string>().as("requests"),
      ])
      .where("workspace_id", "in", ids)
      .where("id", ">=", lowestIdAt(firstMinute * minuteMs))
      .where("surface", "not in", uncountedSurfaces)
      .groupBy(["workspace_id", "requested_model", minute])
      .orderBy(minute)
      .execute();
    for (const { workspace_id: counter, requested_model: model, ...row } of rows) {
      if (rateClassOf(model) !== "paid") continue;
      past.push({
        counter,
        atMs: Number(row.last_ms),
        requests: Number(row.requests),
        windowSeconds: longestSeconds,
      });
    }
  }
  await limiter.restoreHours(past);
}

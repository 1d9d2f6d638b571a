import type { Kysely } from "kysely";
import { dayMs, hourMs, minuteMs, type Clock } from "../platform/kernel/clock.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import type { StorageKind } from "../platform/storage/storage.ts";
import { withTables } from "../platform/storage/with-tables.ts";
import type { Archive } from "./archive/open-archive.ts";
import type { ContentTables } from "./archive/content-insert.ts";
import type { Contents } from "./archive/contents.ts";
import type { ArchivingTables } from "./archive/outbox.ts";
import { GenerationFigures } from "./generation-figures.ts";
import { RecordUsageStore } from "./usage/record-usage-store.ts";
import { GenerationSearch } from "./generation-search.ts";
import {
  type GenerationTables,
  isOutage,
  outcomeOf,
  type AttemptRecord,
  type GenerationRecord,
} from "./generation-record.ts";
import { GenerationStore } from "./generation-store.ts";
import type { RecordMonths } from "./retention.ts";
import { GenerationSizes } from "./generation-sizes.ts";
import { HealthEvents, type HealthEventTables } from "./health/health-events.ts";
import { IncidentNotices, type NoticeTables } from "./health/incident-notices.ts";
import { JobRegistry } from "./health/job-registry.ts";
import { HealthMonitor } from "./health/health-monitor.ts";
import { Traffic } from "./health/traffic.ts";
import { ProviderBudgets } from "./health/provider-budgets.ts";
import type { RoutingState } from "./health/provider-health.ts";
import { ProviderStates } from "./health/provider-states.ts";
import type { RoutedProvider } from "./health/components.ts";
import { SmokeTests, type SmokePort } from "./health/smoke-tests.ts";
import { SmokeStore, type SmokeTables } from "./health/smoke-store.ts";
import { NetworkStatistics, type DescribeModel } from "./network-statistics.ts";
import { NetworkStore } from "./network-store.ts";
import { ServiceRequests } from "./service-requests.ts";
import { RefusedRequests, type RefusedTables } from "./refused-requests.ts";
import { ServiceUsageStore } from "./usage/service-usage-store.ts";
import type { UsageTables } from "./usage/usage-rollup.ts";
import { UsageStore } from "./usage/usage-store.ts";
import { UnsettledRecords, type UnrecordedRequests } from "./unsettled-records.ts";

/** The tables that insights write and read, beside the generation records. */
export type InsightTables = UsageTables &
  HealthEventTables &
  SmokeTables &
  RefusedTables &
  NoticeTables;

/** Milliseconds between periodic checks, and between refreshes of the statistics (contract). */
const checkEveryMs = 10_000;
const refreshEveryMs = 10 * minuteMs;

/**
 * Facts about providers and models that the app provides, since insights do not import the catalog.
 */
interface InsightPorts {
  describeModel: DescribeModel;
  /** Returns whether the list of providers shows a provider. */
  isPublic(providerId: string): boolean;
  /** Returns the providers that requests can be routed to now. */
  routed(): readonly RoutedProvider[];
  /** Sends real requests for smoke tests; undefined where none can be sent. */
  smoke: SmokePort | undefined;
  /** Daily budgets of providers, in nano-USD. */
  budgets: ReadonlyMap<string, bigint>;
}

/** The counters and reports of requests and of the service's health. */
export interface Insights {
  usage: UsageStore;
  /** The same without archive and replica, so that it contains what was just counted. */
  counters: UsageStore;
  /** The counters of the whole service, for operators. */
  service: ServiceUsageStore;
  /** Finds requests of every workspace, for operators. */
  requests: ServiceRequests;
  /** Finds generation records, and computes figures over them. */
  search: GenerationSearch;
  figures: GenerationFigures;
  /** Sums usage by what only generation records know. */
  recordUsage: RecordUsageStore;
  /** The size of generation records in the database. */
  sizes: GenerationSizes;
  /** The monthly partitions of records; undefined on SQLite, where they are in one table. */
  months: RecordMonths | undefined;
  /** Finds single records. */
  generations: GenerationStore;
  /** The archive of records beside the database; undefined where there is none. */
  archive: Archive | undefined;
  /** Prompts and answers of workspaces that keep them. */
  contents: Contents;
  network: NetworkStatistics;
  health: HealthMonitor;
  /** The incidents that operators describe. */
  notices: IncidentNotices;
  /** Takes every attempt, settlement and failure. */
  recorder: HealthRecorder;
  /** Writes the records of requests that were not charged. */
  unsettled: UnsettledRecords;
  /** Counts the requests that a limit, a budget or the balance refused. */
  refused: RefusedRequests;
  /** Takes the reports of the service's own jobs. */
  jobs: JobRegistry;
  /** Returns the most severe state of a provider, for routing; undefined for a healthy one. */
  stateOf(providerId: string): RoutingState | undefined;
  /** Starts the periodic work. */
  start(): void;
  /** Stops; resolves when nothing is in progress any more. */
  stop(): Promise<void>;
}

/** Opens the archive on the database, and on the one that answers lists and sums. */
export type OpenArchive = (
  database: Kysely<ArchivingTables & UsageTables>,
  reads: Kysely<ArchivingTables & UsageTables>,
) => Promise<Archive>;

interface InsightOptions {
  database: Kysely<InsightTables & GenerationTables>;
  /** A replica that answers lists and sums, and may lag behind; absent uses the database. */
  reads?: Kysely<InsightTables & GenerationTables> | undefined;
  /** Undefined where there is no archive. */
  openArchive?: OpenArchive | undefined;
  /** Opens the prompts and answers that are kept in the database; used where there is no archive. */
  openContents(database: Kysely<ContentTables>): Contents;
  commits: CommitQueue;
  /** The engine of the database. */
  kind: StorageKind;
  clock: Clock;
  version: string;
  ports: InsightPorts;
  probePostgres: (() => Promise<boolean>) | undefined;
  /**
   * Returns the share of the gateways' shared state that is available, from 0 to 1; absent where
   * there is none.
   */
  sharedUp?: (() => number) | undefined;
  onError(error: unknown, message: string): void;
  onExcess(excess: UnrecordedRequests): void;
}

/** Builds the insights of a gateway and loads what the previous process left. */
export async function openInsights(options: InsightOptions): Promise<Insights> {
  const { database, reads = database, commits, kind, clock, ports, onError } = options;
  const jobs = new JobRegistry(clock);
  const store = new NetworkStore({ database: withTables(database), commits });
  const network = new NetworkStatistics({ store, clock, describe: ports.describeModel });
  const watch = await openWatch(options, store);
  const archive = await options.openArchive?.(withTables(database), withTables(reads));
  const contents = archive?.contents ?? options.openContents(withTables(database));
  const { unsettled, refused } = writersOf(options);
  const health = new HealthMonitor({
    ...options,
    ...ports,
    probeClickHouse: archive && (() => archive.isUp()),
    ...watch,
    jobs,
  });
  const stores = serviceStores({ database: reads, commits, kind });
  const recall = (): Promise<void> => recallTraffic(watch.traffic, stores.requests, clock);
  return {
    ...stores,
    counters: new UsageStore({ database: withTables(database), commits, kind }),
    recordUsage: new RecordUsageStore({ database: withTables(reads), commits, kind }),
    sizes: new GenerationSizes({ database: withTables(database), kind }),
    months: await openMonths(database, kind),
    ...(archive?.stores ?? storesOf({ database, reads, commits, kind })),
    archive,
    contents,
    network,
    health,
    notices: new IncidentNotices(withTables(database)),
    recorder: new HealthRecorder(watch),
    unsettled,
    refused,
    jobs,
    stateOf: (providerId) => watch.states.stateOf(providerId),
    ...upkeep({ network, health, refused, jobs, archive, contents, recall, onError }),
  };
}

const recalledMax = 10_000;
const recallPage = 500;

/** Counts the newest stored requests of the last hour, which the previous process counted. */
async function recallTraffic(
  traffic: Traffic,
  requests: ServiceRequests,
  clock: Clock,
): Promise<void> {
  // Later requests are counted as they end.
  const toMs = clock.nowMs();
  let after: string | undefined;
  for (let read = 0; read < recalledMax; read += recallPage) {
    const page = await requests.page({
      fromMs: toMs - hourMs,
      toMs,
      filter: {},
      limit: recallPage,
      after,
    });
    traffic.recall(page.records);
    after = page.next;
    if (after === undefined) return;
  }
}

/** Opens the monthly partitions of generation records, where the engine has partitions. */
async function openMonths(
  database: InsightOptions["database"],
  kind: StorageKind,
): Promise<RecordMonths | undefined> {
  if (kind === "sqlite") return undefined;
  const { MonthPartitions, monthlyGenerations } = await import(
    "../platform/storage/postgres/month-partitions.ts"
  );
  return new MonthPartitions(database, monthlyGenerations);
}

/**
 * Loads what the health of providers depends on: traffic, spending, smoke tests, and past changes.
 */
async function openWatch(
  { database, clock, ports, onError }: InsightOptions,
  store: NetworkStore,
): Promise<{
  traffic: Traffic;
  events: HealthEvents;
  states: ProviderStates;
  budgets: ProviderBudgets;
  smoke: SmokeTests;
}> {
  const traffic = new Traffic(clock);
  const events = await HealthEvents.open({
    database: withTables(database),
    clock,
    onError: (error) => onError(error, "a status change could not be kept"),
  });
  const states = new ProviderStates({
    clock,
    known: events.lastStatuses(),
    onChange: (change) => events.add(change),
  });
  const onSignal = states.record.bind(states);
  const spent =
    ports.budgets.size === 0
      ? new Map<string, bigint>()
      : await store.spendOf(Math.floor(clock.nowMs() / dayMs));
  const budgets = new ProviderBudgets({ clock, limits: ports.budgets, spent, onSignal });
  const smoke = await SmokeTests.open({
    store: new SmokeStore(withTables(database)),
    clock,
    port: ports.smoke,
    onSignal,
  });
  return { traffic, events, states, budgets, smoke };
}

/** Builds what writes the records of requests without a settlement. */
const writersOf = ({
  database,
  commits,
  clock,
  onError,
  onExcess,
}: InsightOptions): Pick<Insights, "unsettled" | "refused"> => ({
  unsettled: new UnsettledRecords({
    commits,
    clock,
    onExcess,
    onError: (error) =>
      onError(error, "the record of a failed or cached request could not be written"),
  }),
  refused: new RefusedRequests({
    database: withTables(database),
    commits,
    clock,
    onError: (error) => onError(error, "the count of refused requests could not be written"),
  }),
});

/** Builds the stores of the whole service. The archive is read only within workspaces. */
function serviceStores({
  database,
  ...parts
}: Omit<Parameters<typeof storesOf>[0], "reads">): Pick<Insights, "service" | "requests"> {
  return {
    service: new ServiceUsageStore({ database: withTables(database), ...parts }),
    requests: new ServiceRequests({ database: withTables(database), ...parts }),
  };
}

/** Builds the stores of records and usage where the database has all of them. */
function storesOf({
  database,
  reads,
  ...parts
}: {
  database: Kysely<InsightTables & GenerationTables>;
  reads: Kysely<InsightTables & GenerationTables>;
  commits: CommitQueue;
  kind: StorageKind;
}): Pick<Insights, "usage" | "search" | "figures" | "generations"> {
  return {
    usage: new UsageStore({ database: withTables(reads), ...parts }),
    search: new GenerationSearch({ database: withTables(reads), ...parts }),
    figures: new GenerationFigures({ database: withTables(reads), ...parts }),
    generations: new GenerationStore({ database: withTables(database), ...parts }),
  };
}

function upkeep({
  network,
  health,
  refused,
  jobs,
  archive,
  contents,
  recall,
  onError,
}: Pick<Insights, "network" | "health" | "refused" | "jobs" | "archive" | "contents"> & {
  recall(): Promise<void>;
  onError(error: unknown, message: string): void;
}): Pick<Insights, "start" | "stop"> {
  let timers: ReturnType<typeof setInterval>[] = [];
  let refreshing = Promise.resolve();
  let checking = Promise.resolve();
  let recalling = Promise.resolve();
  const refresh = (): void => {
    refreshing = jobs.run(
      "network_statistics",
      () => network.refresh(),
      (error) => onError(error, "the statistics could not be read"),
    );
  };
  const check = (): void => {
    checking = health.check().catch((error: unknown) => onError(error, "the health check failed"));
  };
  return {
    start() {
      timers = [setInterval(refresh, refreshEveryMs), setInterval(check, checkEveryMs)];
      refresh();
      check();
      recalling = recall().catch((error: unknown) =>
        onError(error, "the traffic of the last hour could not be read"),
      );
      archive?.start();
    },
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all([refreshing, checking, recalling, (archive ?? contents).stop()]);
      await Promise.all([health.stop(), refused.write()]);
    },
  };
}

/** Records what inference reports for the health snapshot, in constant time and without waiting. */
class HealthRecorder {
  constructor(
    private readonly options: {
      traffic: Traffic;
      states: ProviderStates;
      budgets: ProviderBudgets;
    },
  ) {}

  /**
   * Records an attempt that has ended. One with a caller's own key says nothing about the service.
   */
  attemptEnded(attempt: AttemptRecord): void {
    if (attempt.credentialSource !== undefined) return;
    this.options.traffic.attempted(attempt);
    const outcome = outcomeOf(attempt);
    if (outcome !== "neutral") this.options.states.record(attempt.provider, outcome);
  }

  /** Records a request that was answered, whole or in part, and settled. */
  settled(record: GenerationRecord): void {
    this.options.traffic.settled(record);
    this.options.budgets.spend(record.provider, record.costNanoUsd);
  }

  /**
   * Records a request that was not answered. `ownFault` means that the gateway itself was the
   * reason.
   */
  failed({ attempts, ownFault }: { attempts: readonly AttemptRecord[]; ownFault: boolean }): void {
    if (!attempts.every(({ credentialSource }) => credentialSource === undefined)) return;
    this.options.traffic.failed({ outage: ownFault || attempts.some(isOutage) });
  }
}

import type { Kysely } from "kysely";
import { dayMs, minuteMs, type Clock } from "../platform/lib/clock.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import type { StorageKind } from "../platform/storage/storage-kind.ts";
import { GenerationFigures } from "./generation-figures.ts";
import { GenerationSearch } from "./generation-search.ts";
import { GenerationSizes } from "./generation-sizes.ts";
import { HealthEvents, type HealthEventTables } from "./health/health-events.ts";
import { HealthMonitor } from "./health/health-monitor.ts";
import { HealthRecorder } from "./health/health-recorder.ts";
import { JobRegistry } from "./health/job-registry.ts";
import { ProviderBudgets } from "./health/provider-budgets.ts";
import type { RoutingState } from "./health/provider-health.ts";
import { ProviderStates } from "./health/provider-states.ts";
import type { RoutedProvider } from "./health/service-components.ts";
import { SmokeStore, type SmokeTables } from "./health/smoke-store.ts";
import { SmokeTests, type SmokePort } from "./health/smoke-tests.ts";
import { Traffic } from "./health/traffic.ts";
import { NetworkStatistics, type DescribeModel } from "./network-statistics.ts";
import { NetworkStore } from "./network-store.ts";
import { ServiceUsageStore } from "./service-usage-store.ts";
import { RefusedRequests, type RefusedTables } from "./refused-requests.ts";
import { UnsettledRecords, type UnrecordedRequests } from "./unsettled-records.ts";
import type { UsageTables } from "./usage-rollup.ts";
import { UsageStore } from "./usage-store.ts";

/** Tables that insights write and read beside the generation records. */
export type InsightTables = UsageTables & HealthEventTables & SmokeTables & RefusedTables;

/** How often what no request brings along is looked after, and the statistics are read anew (contract). */
const checkEveryMs = 10_000;
const refreshEveryMs = 10 * minuteMs;

/** What insights are told of providers and models; they know no catalog. */
export interface InsightPorts {
  describeModel: DescribeModel;
  /** Whether the list of providers shows one. */
  isPublic(providerId: string): boolean;
  /** Providers that requests can be routed to now. */
  routed(): readonly RoutedProvider[];
  /** Real requests for smoke tests; undefined where there are none to be made. */
  smoke: SmokePort | undefined;
  /** What each provider may cost a day, in nano-USD. */
  budgets: ReadonlyMap<string, bigint>;
}

/** Everything that is counted and told of requests and of the service's health. */
export interface Insights {
  usage: UsageStore;
  /** The counters of the whole service, for operators. */
  service: ServiceUsageStore;
  /** Finds generation records, and what they add up to. */
  search: GenerationSearch;
  figures: GenerationFigures;
  /** What the generation records take in the database. */
  sizes: GenerationSizes;
  network: NetworkStatistics;
  health: HealthMonitor;
  /** To be told of every attempt, settlement and failure. */
  recorder: HealthRecorder;
  /** Writes the records of requests that were not charged. */
  unsettled: UnsettledRecords;
  /** Counts the requests that a limit, a budget or the balance refused. */
  refused: RefusedRequests;
  /** To be told of the service's own jobs. */
  jobs: JobRegistry;
  /** The gravest reason to treat a provider otherwise than others; undefined for a healthy one. For routing. */
  stateOf(providerId: string): RoutingState | undefined;
  /** Begins to look after what no request brings along. */
  start(): void;
  /** Resolves when nothing is under way any more. */
  stop(): Promise<void>;
}

/** Builds the insights of a gateway and reads what the process before it left. */
export async function openInsights(options: {
  database: Kysely<InsightTables>;
  commits: CommitQueue;
  /** The engine behind the database. */
  kind: StorageKind;
  clock: Clock;
  version: string;
  ports: InsightPorts;
  probePostgres: (() => Promise<boolean>) | undefined;
  /** Whether the server answers that gateways share; absent where they share none. */
  isSharedUp?: (() => boolean) | undefined;
  onError(error: unknown, message: string): void;
  onExcess(excess: UnrecordedRequests): void;
}): Promise<Insights> {
  const { database, commits, clock, ports, onError } = options;
  const jobs = new JobRegistry(clock);
  const traffic = new Traffic(clock);
  const store = new NetworkStore({ database: database.withTables(), commits });
  const network = new NetworkStatistics({ store, clock, describe: ports.describeModel });
  const events = await HealthEvents.open({
    database: database.withTables(),
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
    store: new SmokeStore(database.withTables()),
    clock,
    port: ports.smoke,
    onSignal,
  });
  const recorder = new HealthRecorder({ traffic, states, budgets });
  const unsettled = new UnsettledRecords({
    commits,
    clock,
    onExcess: options.onExcess,
    onError: (error) =>
      onError(error, "the record of a failed or cached request could not be written"),
  });
  const refused = new RefusedRequests({
    database: database.withTables(),
    commits,
    clock,
    onError: (error) => onError(error, "the count of refused requests could not be written"),
  });
  const health = new HealthMonitor({
    ...options,
    ...ports,
    traffic,
    states,
    budgets,
    smoke,
    jobs,
    events,
  });
  return {
    usage: new UsageStore({ database: database.withTables(), commits, kind: options.kind }),
    service: new ServiceUsageStore({ database: database.withTables(), commits }),
    search: new GenerationSearch({ database: database.withTables(), commits, kind: options.kind }),
    figures: new GenerationFigures({
      database: database.withTables(),
      commits,
      kind: options.kind,
    }),
    sizes: new GenerationSizes({ database: database.withTables(), kind: options.kind }),
    network,
    health,
    recorder,
    unsettled,
    refused,
    jobs,
    stateOf: (providerId) => states.stateOf(providerId),
    ...upkeep({ network, health, refused, jobs, onError }),
  };
}

function upkeep({
  network,
  health,
  refused,
  jobs,
  onError,
}: Pick<Insights, "network" | "health" | "refused" | "jobs"> & {
  onError(error: unknown, message: string): void;
}): Pick<Insights, "start" | "stop"> {
  let timers: ReturnType<typeof setInterval>[] = [];
  let refreshing = Promise.resolve();
  let checking = Promise.resolve();
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
    },
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all([refreshing, checking]);
      await Promise.all([health.stop(), refused.write()]);
    },
  };
}

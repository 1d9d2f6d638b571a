import type { MetricDefinition } from "./exposition.ts";
import {
  type CounterCell,
  counterFamily,
  type GaugeCell,
  type HistogramCell,
  histogramFamily,
  type MetricFamily,
  newGauge,
} from "./metric-family.ts";

const durationBounds = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
];
const overheadBounds = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1,
];
const firstTokenBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30, 60];

/** Creates new families of every labelled metric. */
export function newFamilies() {
  return {
    requests: counterFamily("endpoint", "status"),
    inference: counterFamily("provider", "model", "outcome"),
    durations: histogramFamily(durationBounds, "endpoint"),
    overheads: histogramFamily(overheadBounds, "endpoint"),
    firstTokens: histogramFamily(firstTokenBounds, "provider"),
    tokens: counterFamily("provider", "kind"),
    modelTokens: counterFamily("model", "kind"),
    media: counterFamily("provider", "model", "kind"),
    attempts: counterFamily("provider", "outcome"),
    conversions: histogramFamily(durationBounds, "format", "outcome"),
    toolCalls: counterFamily("server", "outcome"),
    toolCallDurations: histogramFamily(durationBounds, "server"),
    errors: counterFamily("code", "fault"),
    rateLimited: counterFamily(),
    charged: counterFamily(),
    uncollected: begun(counterFamily("reason"), "balance", "database"),
  };
}

/**
 * Returns a family whose series are there from the start: to Prometheus, a series that begins with
 * its first count has not increased.
 */
function begun<Cell>(family: MetricFamily<Cell>, ...values: readonly string[]): MetricFamily<Cell> {
  for (const value of values) family.at(value);
  return family;
}

/** Every labelled metric. */
export type Families = ReturnType<typeof newFamilies>;

/** The figures of runs and customers before there are any. */
export const noSpenders = { openRuns: 0, refusedByRuns: 0, customers: 0 } as const;

/** Numbers that are read at a scrape; the first two are kept here. */
export interface Gauges {
  requestsInFlight: GaugeCell;
  openStreams: GaugeCell;
  clientConnections: () => Promise<number>;
  /** The open sockets of clients, and the frames that these have sent. */
  sockets: () => { open: number; frames: number; seconds: number };
  bodyBytes: () => number;
  bodyBytesMax: () => number;
  /** Undefined where the gateway serves plain HTTP. */
  certificateExpiry?: (() => number) | undefined;
  holdsOpen: () => number;
  commitQueuePending: () => number;
  commitsRejected: () => number;
  uncollectedWaiting: () => number;
  toolServersLeftAlone: () => number;
  /** The runs that are open, the requests that ended runs have refused, and known customers. */
  spenders: () => Readonly<Record<"openRuns" | "refusedByRuns" | "customers", number>>;
  /** The names of parts that keep the gateway from serving; undefined until it has started. */
  unreadyParts?: (() => Promise<readonly string[]>) | undefined;
  /** Undefined where there is no server of shared state. */
  sharedState?: (() => number) | undefined;
  /** Undefined until the gateway has joined others. */
  configurations?: (() => number) | undefined;
  /** Undefined where the database has no replica. */
  replica?:
    | (() => Readonly<Record<"lagSeconds" | "fallbacks", number> & { isRead: boolean }>)
    | undefined;
  /** Undefined where there is no archive. */
  archive?:
    | (() => Readonly<
        Record<"waiting" | "lagSeconds" | "archived" | "dropped", number> & {
          isUp: boolean;
          /** Prompts and answers. */
          contents: Readonly<Record<"waiting" | "archived" | "dropped", number>>;
        }
      >)
    | undefined;
}

/** Returns names and help texts, which operators' dashboards depend on. */
export function definitionsOf(families: Families, gauges: Gauges): MetricDefinition[] {
  const counter = (
    name: string,
    help: string,
    family: MetricFamily<CounterCell>,
  ): MetricDefinition => ({
    kind: "counter",
    name: `switchyard_${name}`,
    help,
    family,
  });
  const histogram = (
    name: string,
    help: string,
    family: MetricFamily<HistogramCell>,
  ): MetricDefinition => ({ kind: "histogram", name: `switchyard_${name}`, help, family });
  return [
    counter("requests_total", "Requests answered.", families.requests),
    counter("inference_requests_total", "Inference requests, by outcome.", families.inference),
    histogram(
      "request_duration_seconds",
      "Time from the first byte received to the last byte sent.",
      families.durations,
    ),
    histogram(
      "gateway_overhead_seconds",
      "Part of a request's time that the gateway itself took.",
      families.overheads,
    ),
    histogram(
      "time_to_first_token_seconds",
      "Time to the first content of a stream.",
      families.firstTokens,
    ),
    counter("tokens_total", "Tokens metered, in disjoint kinds.", families.tokens),
    counter("model_tokens_total", "Tokens metered, by model.", families.modelTokens),
    counter(
      "media_units_total",
      "Pictures, milliseconds of sound and characters metered, by kind.",
      families.media,
    ),
    counter("charged_nano_usd_total", "Charges in billionths of a US dollar.", families.charged),
    counter(
      "uncollected_nano_usd_total",
      "Delivered but not charged, in billionths of a US dollar: beyond the balance, or refused by the database.",
      families.uncollected,
    ),
    counter("upstream_attempts_total", "Attempts at upstreams, by outcome.", families.attempts),
    histogram(
      "conversion_duration_seconds",
      "Time to convert a file to text, by kind of file and outcome.",
      families.conversions,
    ),
    counter("mcp_calls_total", "Calls of tools of MCP servers, by outcome.", families.toolCalls),
    histogram(
      "mcp_call_duration_seconds",
      "Time in which an MCP server answered a call.",
      families.toolCallDurations,
    ),
    counter("errors_total", "Errors answered, by code and fault.", families.errors),
    counter("rate_limited_total", "Requests refused by a rate limit.", families.rateLimited),
    ...insideMetrics(gauges),
    ...outsideMetrics(gauges),
  ];
}

/** Returns the metrics of the gateway's present activity. */
function insideMetrics(gauges: Gauges): MetricDefinition[] {
  const gauge = (name: string, help: string, read: () => number): MetricDefinition => ({
    kind: "gauge",
    name: `switchyard_${name}`,
    help,
    read: async () => read(),
  });
  return [
    gauge("requests_in_flight", "Requests in progress.", () => gauges.requestsInFlight.value),
    gauge("open_streams", "Event streams open to clients.", () => gauges.openStreams.value),
    {
      kind: "gauge",
      name: "switchyard_client_connections",
      help: "Client connections, including idle ones.",
      read: () => gauges.clientConnections(),
    },
    gauge("client_sockets", "WebSockets open to clients.", () => gauges.sockets().open),
    {
      kind: "counter",
      name: "switchyard_client_frames_total",
      help: "Frames that clients have sent over WebSockets.",
      read: async () => gauges.sockets().frames,
    },
    {
      kind: "counter",
      name: "switchyard_client_socket_seconds_total",
      help: "Seconds that WebSockets of clients were open, with those that still are.",
      read: async () => gauges.sockets().seconds,
    },
    gauge("request_body_bytes", "Bytes of request bodies in memory.", () => gauges.bodyBytes()),
    gauge("request_body_limit_bytes", "Bytes that request bodies may take in memory.", () =>
      gauges.bodyBytesMax(),
    ),
    metric(
      "gauge",
      "tls_certificate_expiry_seconds",
      "Seconds until the certificate of server.tls expires; NaN if the gateway serves plain HTTP.",
      () => gauges.certificateExpiry?.() ?? Number.NaN,
    ),
    gauge("holds_open", "Holds on balances that are not settled yet.", () => gauges.holdsOpen()),
    gauge("commit_queue_pending", "Settlements waiting for their commit.", () =>
      gauges.commitQueuePending(),
    ),
    {
      kind: "counter",
      name: "switchyard_commits_rejected_total",
      help: "Commits that the database refused.",
      read: async () => gauges.commitsRejected(),
    },
    gauge("mcp_servers_left_alone", "MCP servers that failed repeatedly and are left alone.", () =>
      gauges.toolServersLeftAlone(),
    ),
    gauge("runs_open", "Runs of agents that have not ended.", () => gauges.spenders().openRuns),
    {
      kind: "counter",
      name: "switchyard_runs_refused_total",
      help: "Requests that were refused because their run has nothing left, is paused or has ended.",
      read: async () => gauges.spenders().refusedByRuns,
    },
    gauge("customers", "End customers that are known.", () => gauges.spenders().customers),
    gauge(
      "uncollected_charges_waiting",
      "Refused charges that wait to be booked as uncollected.",
      () => gauges.uncollectedWaiting(),
    ),
  ];
}

/** Returns a metric without labels that is read in memory. */
const metric = (
  kind: "gauge" | "counter",
  name: string,
  help: string,
  read: () => number,
): MetricDefinition => ({ kind, name: `switchyard_${name}`, help, read: async () => read() });

/**
 * Returns the metrics of engines beside the database. An engine that is not in use is reported as
 * healthy.
 */
function outsideMetrics(gauges: Gauges): MetricDefinition[] {
  const unreadyParts = async (): Promise<readonly string[]> =>
    (await gauges.unreadyParts?.()) ?? [];
  return [
    {
      kind: "gauge",
      name: "switchyard_ready",
      help: "Whether the gateway can serve requests, as /readyz says: 0 while it drains or lacks its database or shared state.",
      read: async () => ((await unreadyParts()).length === 0 ? 1 : 0),
    },
    {
      kind: "gauge",
      name: "switchyard_storage_up",
      help: "Whether the database answers and takes writes.",
      read: async () => ((await unreadyParts()).includes("storage") ? 0 : 1),
    },
    metric(
      "gauge",
      "shared_state_up",
      "The share of shared state that is usable: below 1 while a part of a cluster is away; 1 if none is configured.",
      () => gauges.sharedState?.() ?? 1,
    ),
    metric(
      "gauge",
      "configurations",
      "Number of different configurations among the gateways on the database; 1 if all are alike.",
      () => gauges.configurations?.() ?? 1,
    ),
    metric(
      "gauge",
      "replica_up",
      "Whether the gateway reads from the replica of the database; 1 if none is configured.",
      () => (gauges.replica?.().isRead === false ? 0 : 1),
    ),
    metric(
      "gauge",
      "replica_lag_seconds",
      "Lag of the database replica, in seconds.",
      () => gauges.replica?.().lagSeconds ?? 0,
    ),
    metric(
      "counter",
      "replica_fallbacks_total",
      "Queries that the primary answered instead of the replica.",
      () => gauges.replica?.().fallbacks ?? 0,
    ),
    ...archiveMetrics(() => gauges.archive?.()),
  ];
}

/** Returns the metrics of the archive. */
function archiveMetrics(
  archive: () => ReturnType<NonNullable<Gauges["archive"]>> | undefined,
): MetricDefinition[] {
  return [
    metric("gauge", "archive_up", "Whether the archive answers; 1 if none is configured.", () =>
      archive()?.isUp === false ? 0 : 1,
    ),
    metric(
      "gauge",
      "archive_outbox_records",
      "Generation records that wait for the archive; counted by the gateway that archives.",
      () => archive()?.waiting ?? 0,
    ),
    metric(
      "gauge",
      "archive_lag_seconds",
      "Age of the oldest batch of records that the archive has not accepted.",
      () => archive()?.lagSeconds ?? 0,
    ),
    metric(
      "counter",
      "archived_records_total",
      "Generation records that this gateway archived.",
      () => archive()?.archived ?? 0,
    ),
    metric(
      "counter",
      "archive_dropped_records_total",
      "Generation records that were deleted before they were archived.",
      () => archive()?.dropped ?? 0,
    ),
    metric(
      "gauge",
      "archive_outbox_contents",
      "Prompts with their answers that wait for the archive; counted by the gateway that archives.",
      () => archive()?.contents.waiting ?? 0,
    ),
    metric(
      "counter",
      "archived_contents_total",
      "Prompts with their answers that this gateway archived.",
      () => archive()?.contents.archived ?? 0,
    ),
    metric(
      "counter",
      "archive_dropped_contents_total",
      "Prompts with their answers that were lost or deleted before they were archived.",
      () => archive()?.contents.dropped ?? 0,
    ),
  ];
}

/** Returns every metric of the gateway with its labels, as the documentation lists them. */
export function metricTable(): {
  name: string;
  kind: string;
  help: string;
  labels: readonly string[];
}[] {
  const nothing = { requestsInFlight: newGauge(), openStreams: newGauge() };
  const read = (): number => 0;
  const gauges: Gauges = {
    ...nothing,
    clientConnections: async () => 0,
    sockets: () => ({ open: 0, frames: 0, seconds: 0 }),
    bodyBytes: read,
    bodyBytesMax: read,
    holdsOpen: read,
    commitQueuePending: read,
    commitsRejected: read,
    uncollectedWaiting: read,
    toolServersLeftAlone: read,
    spenders: () => noSpenders,
  };
  return definitionsOf(newFamilies(), gauges).map((definition) => ({
    name: definition.name,
    kind: definition.kind,
    help: definition.help,
    labels: "family" in definition ? definition.family.labelNames : [],
  }));
}

/**
 * Counts as plain numbers. A labelled `inc` or `observe` of prom-client takes 170-200 ns (labels
 * are validated and joined to a text each time), and a finished request makes some ten of them.
 * Here each is one addition, and prom-client sees the numbers only at a scrape (`exposition.ts`).
 */

import type { MetricDefinition } from "./exposition.ts";
import { CounterCell, Family, GaugeCell, HistogramCell } from "./series.ts";

const durationBounds = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
];
const overheadBounds = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1,
];
const firstTokenBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30, 60];

const counterFamily = (...labelNames: string[]) => new Family(labelNames, () => new CounterCell());
const histogramFamily = (bounds: readonly number[], ...labelNames: string[]) =>
  new Family(labelNames, () => new HistogramCell(bounds));

/** Fresh families of every labelled metric. */
export function newFamilies() {
  return {
    requests: counterFamily("endpoint", "status"),
    inference: counterFamily("provider", "model", "outcome"),
    durations: histogramFamily(durationBounds, "endpoint"),
    overheads: histogramFamily(overheadBounds, "endpoint"),
    firstTokens: histogramFamily(firstTokenBounds, "provider"),
    tokens: counterFamily("provider", "kind"),
    attempts: counterFamily("provider", "outcome"),
    conversions: histogramFamily(durationBounds, "format", "outcome"),
    errors: counterFamily("code", "fault"),
    rateLimited: counterFamily(),
    charged: counterFamily(),
    uncollected: counterFamily("reason"),
  };
}

/** Every labelled metric. */
export type Families = ReturnType<typeof newFamilies>;

/** Numbers that are read at a scrape, the first two kept here. */
export interface Gauges {
  requestsInFlight: GaugeCell;
  openStreams: GaugeCell;
  clientConnections: () => number | Promise<number>;
  bodyBytes: () => number;
  holdsOpen: () => number;
  commitQueuePending: () => number;
  commitsRejected: () => number;
  uncollectedWaiting: () => number;
  /** Undefined where there is no server of shared state. */
  sharedState?: (() => number) | undefined;
}

/** Names and help texts; an operator's dashboards hang on them. */
export function definitionsOf(families: Families, gauges: Gauges): MetricDefinition[] {
  const counter = (name: string, help: string, family: Family<CounterCell>): MetricDefinition => ({
    kind: "counter",
    name: `switchyard_${name}`,
    help,
    family,
  });
  const gauge = (
    name: string,
    help: string,
    read: () => number | Promise<number>,
  ): MetricDefinition => ({ kind: "gauge", name: `switchyard_${name}`, help, read });
  const histogram = (
    name: string,
    help: string,
    family: Family<HistogramCell>,
  ): MetricDefinition => ({ kind: "histogram", name: `switchyard_${name}`, help, family });
  return [
    counter("requests_total", "Requests answered.", families.requests),
    counter(
      "inference_requests_total",
      "Inference requests by how they ended.",
      families.inference,
    ),
    histogram(
      "request_duration_seconds",
      "From first byte in to last byte out.",
      families.durations,
    ),
    histogram(
      "gateway_overhead_seconds",
      "Time that the gateway itself took of a request.",
      families.overheads,
    ),
    histogram(
      "time_to_first_token_seconds",
      "Time to the first content of a stream.",
      families.firstTokens,
    ),
    counter("tokens_total", "Tokens metered, in disjoint kinds.", families.tokens),
    counter("charged_nano_usd_total", "Charges in billionths of a US dollar.", families.charged),
    counter(
      "uncollected_nano_usd_total",
      "Delivered and not charged, in billionths of a US dollar: beyond the balance, or refused.",
      families.uncollected,
    ),
    counter(
      "upstream_attempts_total",
      "Attempts at upstreams by how they ended.",
      families.attempts,
    ),
    histogram(
      "conversion_duration_seconds",
      "From a file to its text, by what the file was and how it ended.",
      families.conversions,
    ),
    counter("errors_total", "Errors answered, by code and whose fault it was.", families.errors),
    counter("rate_limited_total", "Requests refused by a rate limit.", families.rateLimited),
    gauge("requests_in_flight", "Requests being worked on.", () => gauges.requestsInFlight.value),
    gauge("open_streams", "Event streams open towards clients.", () => gauges.openStreams.value),
    gauge("client_connections", "Connections of clients, idle ones included.", () =>
      gauges.clientConnections(),
    ),
    gauge("request_body_bytes", "Bytes of request bodies in memory.", () => gauges.bodyBytes()),
    gauge("holds_open", "Holds on balances that are not settled yet.", () => gauges.holdsOpen()),
    gauge("commit_queue_pending", "Settlements waiting for their commit.", () =>
      gauges.commitQueuePending(),
    ),
    {
      kind: "counter",
      name: "switchyard_commits_rejected_total",
      help: "Commits that the database refused.",
      read: () => gauges.commitsRejected(),
    },
    gauge(
      "uncollected_charges_waiting",
      "Refused charges that wait for the database to be booked.",
      () => gauges.uncollectedWaiting(),
    ),
    gauge(
      "shared_state_up",
      "Whether the server of shared state answers; 1 where there is none.",
      () => gauges.sharedState?.() ?? 1,
    ),
  ];
}

/** Every metric of the gateway with its labels, as the documentation lists them. */
export function metricTable(): {
  name: string;
  kind: string;
  help: string;
  labels: readonly string[];
}[] {
  const nothing = { requestsInFlight: new GaugeCell(), openStreams: new GaugeCell() };
  const read = (): number => 0;
  const gauges: Gauges = {
    ...nothing,
    clientConnections: read,
    bodyBytes: read,
    holdsOpen: read,
    commitQueuePending: read,
    commitsRejected: read,
    uncollectedWaiting: read,
  };
  return definitionsOf(newFamilies(), gauges).map((definition) => ({
    name: definition.name,
    kind: definition.kind,
    help: definition.help,
    labels: "family" in definition ? definition.family.labelNames : [],
  }));
}

import type { Registry } from "prom-client";
import { errorCatalog, type ErrorCode, type ErrorFacts } from "../kernel/errors.ts";
import type { Usage } from "../kernel/usage.ts";
import type { MetricDefinition } from "./exposition.ts";
import {
  type Families,
  type Gauges,
  definitionsOf,
  newFamilies,
  noSpenders,
} from "./metric-families.ts";
import { type CounterCell, type GaugeCell, type HistogramCell, newGauge } from "./metric-family.ts";
import {
  mediaCounts,
  tokenKinds,
  tokenNames,
  UsageMetrics,
  type LabelledUsage,
  type TokenPart,
  type UsageMetricsOptions,
} from "./usage-metrics.ts";

/** The outcome of an inference request, or of one attempt at an upstream. */
export type Outcome = "completed" | "cut" | "cancelled" | "cached" | "refused" | "failed";

/** The class of a status, as a label. */
export type StatusClass = "1xx" | "2xx" | "3xx" | "4xx" | "5xx";

/** An inference request after its settlement. */
export interface FinishedInference extends LabelledUsage {
  /** The declared path, such as `/v1/chat/completions`, never the path that the caller sent. */
  endpoint: string;
  /** The HTTP status of the answer. */
  status: number;
  /**
   * The slug of the provider that served, or of the last one tried; `none` when none was called.
   */
  provider: string;
  /** The catalog id of the model, never the text of a request that named an unknown one. */
  model: string;
  /** The ids of the workspace and of the key that paid. */
  workspace: string;
  key: string;
  outcome: Outcome;
  /** Milliseconds from the request's first byte to the answer's last. */
  durationMs: number;
  /** The part of it that the gateway itself took. */
  overheadMs: number;
  /**
   * Milliseconds from the request's first byte to the first content; absent where nothing was
   * streamed.
   */
  firstTokenMs?: number;
  tokens?: Usage;
  chargedNanoUsd?: bigint;
}

/**
 * The metrics of the service. Each method returns a cell that may be kept where its labels do not
 * change.
 */
export interface Metrics {
  /** Counts requests of any endpoint. */
  request(endpoint: string, status: number): CounterCell;
  /** Counts inference requests. Models beyond the cap are counted as `other`. */
  inference(provider: string, model: string, outcome: Outcome): CounterCell;
  /** Seconds from the first byte received to the last byte sent. */
  requestDuration(endpoint: string): HistogramCell;
  /** Seconds that the gateway itself took of a request. */
  gatewayOverhead(endpoint: string): HistogramCell;
  /** Seconds to the first content of a stream. */
  firstToken(provider: string): HistogramCell;
  tokens(provider: string, kind: TokenPart): CounterCell;
  upstreamAttempt(provider: string, outcome: Outcome): CounterCell;
  /** Seconds from a file to its text, including the wait for a converter. */
  conversion(format: string, outcome: string): HistogramCell;
  /** Counts calls of tools, by server and outcome. */
  toolCall(server: string, outcome: string): CounterCell;
  /** Seconds in which a server answered a call of a tool. */
  toolCallDuration(server: string): HistogramCell;
  /** Counts errors that were answered, labelled with who is at fault according to the catalogue. */
  error(code: ErrorCode): CounterCell;
  readonly rateLimited: CounterCell;
  readonly chargedNanoUsd: CounterCell;
  /**
   * Counts the nano-USD of deliveries that were not charged: beyond what the balance could pay, or
   * refused by the database.
   */
  uncollectedNanoUsd(reason: "balance" | "database"): CounterCell;
  readonly requestsInFlight: GaugeCell;
  readonly openStreams: GaugeCell;
  /**
   * Records everything about one settled inference request at once; takes 0.2 us. Does not count
   * attempts, errors or gauges.
   */
  recordInference(finished: FinishedInference): void;
  /** Sets where the connections of clients and the bytes of their bodies are read at a scrape. */
  watchServer(read: {
    connections(): Promise<number>;
    sockets(): { open: number; frames: number; seconds: number };
    bodyBytes(): number;
    bodyBytesMax: number;
    /** Seconds until the certificate expires; absent where the gateway serves plain HTTP. */
    certificateExpirySeconds?: (() => number) | undefined;
  }): void;
  /** Sets where the number of open holds is read at a scrape. */
  watchHoldsOpen(read: () => number): void;
  /** Sets where the number of units waiting for their commit is read at a scrape. */
  watchCommitQueuePending(read: () => number): void;
  /** Sets where the number of refused commits is read at a scrape. */
  watchCommitsRejected(read: () => number): void;
  /** Sets where the number of refused charges that wait for the database is read at a scrape. */
  watchUncollectedWaiting(read: () => number): void;
  /**
   * Sets where it is read at a scrape which parts keep the gateway from serving, as `/readyz` names
   * them.
   */
  watchReadiness(read: () => Promise<readonly string[]>): void;
  /**
   * Sets where it is read at a scrape whether the server of shared state answers, as 1 or 0. Not
   * called where there is none.
   */
  watchSharedState(read: () => number): void;
  /** Sets where the number of different configurations among the database's gateways is read. */
  watchConfigurations(read: () => number): void;
  /** Sets where the figures of runs, and the number of customers, are read. */
  watchSpenders(read: Gauges["spenders"]): void;
  /** Sets where the number of MCP servers that are left alone is read. */
  watchToolServers(read: () => number): void;
  /** Sets where the figures of the archive are read. */
  watchArchive(read: NonNullable<Gauges["archive"]>): void;
  /** Sets where the figures of the replica are read. */
  watchReplica(read: NonNullable<Gauges["replica"]>): void;
  /** Every metric, for exporters. */
  readonly definitions: readonly MetricDefinition[];
  /** Returns the exposition in Prometheus' text format. */
  text(): Promise<string>;
  readonly contentType: string;
}

/** Options of metrics. */
export interface MetricsOptions {
  /** The most distinct model labels; further ones are counted as `other`. Default 200. */
  maxModelLabels?: number;
  /** Labels of usage; absent where the operator asked for none. */
  usage?: UsageMetricsOptions | undefined;
}

const statusClasses = ["1xx", "1xx", "2xx", "3xx", "4xx", "5xx"] as const;

/** Returns the class of an HTTP status. An invalid status counts as a failure of the gateway. */
export const statusClass = (status: number): StatusClass =>
  statusClasses[Math.floor(status / 100)] ?? "5xx";

/**
 * Creates the service's own metrics. Labels are endpoints, providers, models (capped), codes and
 * outcomes: all are bounded, and none names a key or a workspace unless `usage` asks for it, or a
 * user. prom-client is loaded by
 * the first scrape, since loading it takes 25 ms of a start.
 */
export function createMetrics(options: MetricsOptions = {}): Metrics {
  const families = newFamilies();
  const gauges: Gauges = {
    requestsInFlight: newGauge(),
    openStreams: newGauge(),
    clientConnections: async () => Number.NaN,
    sockets: () => ({ open: 0, frames: 0, seconds: 0 }),
    bodyBytes: () => 0,
    bodyBytesMax: () => 0,
    holdsOpen: () => 0,
    commitQueuePending: () => 0,
    commitsRejected: () => 0,
    uncollectedWaiting: () => 0,
    toolServersLeftAlone: () => 0,
    spenders: () => noSpenders,
    unreadyParts: undefined,
    sharedState: undefined,
    configurations: undefined,
    archive: undefined,
    replica: undefined,
  };
  const capModel = labelCap(options.maxModelLabels ?? 200);
  let registry: Promise<Registry> | undefined;
  const usage = options.usage && new UsageMetrics(options.usage);
  const definitions = [...definitionsOf(families, gauges), ...(usage?.definitions() ?? [])];
  const loadRegistry = async (): Promise<Registry> =>
    (await import("./exposition.ts")).exposition(definitions);
  return {
    definitions,
    request: (endpoint, status) => families.requests.at(endpoint, statusClass(status)),
    inference: (provider, model, outcome) =>
      families.inference.at(provider, capModel(model), outcome),
    requestDuration: (endpoint) => families.durations.at(endpoint),
    gatewayOverhead: (endpoint) => families.overheads.at(endpoint),
    firstToken: (provider) => families.firstTokens.at(provider),
    tokens: (provider, kind) => families.tokens.at(provider, tokenKinds[kind]),
    conversion: (format, outcome) => families.conversions.at(format, outcome),
    toolCall: (server, outcome) => families.toolCalls.at(server, outcome),
    toolCallDuration: (server) => families.toolCallDurations.at(server),
    upstreamAttempt: (provider, outcome) => families.attempts.at(provider, outcome),
    error: (code) => families.errors.at(code, faultOf(code)),
    rateLimited: families.rateLimited.at(),
    chargedNanoUsd: families.charged.at(),
    uncollectedNanoUsd: (reason) => families.uncollected.at(reason),
    requestsInFlight: gauges.requestsInFlight,
    openStreams: gauges.openStreams,
    recordInference: inferenceRecorder(families, { capModel, usage }),
    watchServer({ connections, sockets, bodyBytes, bodyBytesMax, certificateExpirySeconds }) {
      gauges.certificateExpiry = certificateExpirySeconds;
      gauges.clientConnections = connections;
      gauges.sockets = sockets;
      gauges.bodyBytes = bodyBytes;
      gauges.bodyBytesMax = () => bodyBytesMax;
    },
    watchHoldsOpen: (read) => void (gauges.holdsOpen = read),
    watchCommitQueuePending: (read) => void (gauges.commitQueuePending = read),
    watchCommitsRejected: (read) => void (gauges.commitsRejected = read),
    watchUncollectedWaiting: (read) => void (gauges.uncollectedWaiting = read),
    watchReadiness: (read) => void (gauges.unreadyParts = read),
    watchSharedState: (read) => void (gauges.sharedState = read),
    watchConfigurations: (read) => void (gauges.configurations = read),
    watchSpenders: (read) => void (gauges.spenders = read),
    watchToolServers: (read) => void (gauges.toolServersLeftAlone = read),
    watchReplica: (read) => void (gauges.replica = read),
    watchArchive: (read) => void (gauges.archive = read),
    text: async () => (await (registry ??= loadRegistry())).metrics(),
    contentType: "text/plain; version=0.0.4; charset=utf-8",
  };
}

const faultOf = (code: ErrorCode): ErrorFacts["fault"] => errorCatalog[code].fault;

/**
 * Returns a function that passes the first `limit` distinct values through and replaces all later
 * ones by `other`.
 */
function labelCap(limit: number): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= limit) return "other";
    known.add(value);
    return value;
  };
}

function inferenceRecorder(
  families: Families,
  { capModel, usage }: { capModel: (model: string) => string; usage: UsageMetrics | undefined },
) {
  const charged = families.charged.at();
  return (finished: FinishedInference): void => {
    const { endpoint, provider, tokens } = finished;
    const model = capModel(finished.model);
    usage?.record(finished);
    families.requests.at(endpoint, statusClass(finished.status)).value += 1;
    families.inference.at(provider, model, finished.outcome).value += 1;
    families.durations.at(endpoint).observe(finished.durationMs / 1000);
    families.overheads.at(endpoint).observe(finished.overheadMs / 1000);
    if (finished.firstTokenMs !== undefined)
      families.firstTokens.at(provider).observe(finished.firstTokenMs / 1000);
    if (finished.chargedNanoUsd !== undefined) charged.value += Number(finished.chargedNanoUsd);
    if (tokens === undefined) return;
    for (const name of tokenNames) {
      const count = tokens[name];
      if (count === undefined || count === 0) continue;
      families.tokens.at(provider, tokenKinds[name]).value += count;
      families.modelTokens.at(model, tokenKinds[name]).value += count;
    }
    for (const [kind, count] of mediaCounts(tokens))
      families.media.at(provider, model, kind).value += count;
  };
}

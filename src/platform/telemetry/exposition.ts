import { collectDefaultMetrics, Registry, type Metric } from "prom-client";
import type { CounterCell, HistogramCell, MetricFamily } from "./metric-family.ts";

/** A metric as it is shown to a scraper. */
export type MetricDefinition =
  | { kind: "counter"; name: string; help: string; family: MetricFamily<CounterCell> }
  | { kind: "gauge" | "counter"; name: string; help: string; read: () => Promise<number> }
  | { kind: "histogram"; name: string; help: string; family: MetricFamily<HistogramCell> };

interface Sample {
  labels: Record<string, string | number>;
  value: number;
  metricName?: string;
}

/** The metrics of this process, which every registry shows; made by the first scrape. */
let processMetrics: readonly Metric[] | undefined;

/** Returns what prom-client measures of the process, as far as a scrape costs little. */
function metricsOfProcess(): readonly Metric[] {
  if (processMetrics !== undefined) return processMetrics;
  const registry = new Registry();
  // Every 100 ms; prom-client's own 10 ms woke an idle process often enough for 0.3 % of a core.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  // Gauges that are named like counters, which `promtool check metrics` refuses. The gauges without
  // the suffix say the same by type.
  for (const kind of ["handles", "requests", "resources"])
    registry.removeSingleMetric(`nodejs_active_${kind}_total`);
  // Bun walks every object of the heap for these: 100 ms of a loop that answers nothing meanwhile
  // for a million objects. It has no such spaces; `nodejs_heap_size_*` costs nothing.
  for (const figure of ["total", "used", "available"])
    registry.removeSingleMetric(`nodejs_heap_space_size_${figure}_bytes`);
  processMetrics = registry
    .getMetricsAsArray()
    .map(({ name }) => registry.getSingleMetric(name))
    .filter((metric) => metric !== undefined);
  return processMetrics;
}

/**
 * Creates a prom-client registry that reads the gateway's cells when it is scraped, and measures
 * the process.
 */
export function exposition(definitions: readonly MetricDefinition[]): Registry {
  const registry = new Registry();
  for (const metric of metricsOfProcess()) registry.registerMetric(metric);
  for (const definition of definitions) registry.registerMetric(asMetric(definition));
  return registry;
}

/**
 * Returns an object in the shape of a prom-client metric: a registry asks it for `name`, `get()`
 * and `reset()`, although its types require the whole class. A real prom-client metric cannot be
 * given finished bucket counts.
 */
function asMetric(definition: MetricDefinition): Metric {
  const { name, help, kind } = definition;
  const get = async () => ({
    name,
    help,
    type: kind,
    aggregator: "sum",
    values: await samplesOf(definition),
  });
  return { name, help, type: kind, get, reset: () => undefined } as unknown as Metric;
}

async function samplesOf(definition: MetricDefinition): Promise<Sample[]> {
  if ("read" in definition) return [{ labels: {}, value: await definition.read() }];
  if (definition.kind === "counter") {
    return definition.family.entries().map(({ labels, cell }) => ({ labels, value: cell.value }));
  }
  return definition.family
    .entries()
    .flatMap(({ labels, cell }) => histogramSamples(definition.name, labels, cell));
}

function histogramSamples(
  name: string,
  labels: Record<string, string>,
  cell: HistogramCell,
): Sample[] {
  let count = 0;
  const buckets = [...cell.bounds, "+Inf"].map((bound, index) => {
    count += cell.counts[index] ?? 0;
    return { metricName: `${name}_bucket`, labels: { le: bound, ...labels }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: cell.sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}

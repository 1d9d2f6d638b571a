import { afterEach, describe, expect, test } from "bun:test";
import { z } from "zod";
import { systemClock } from "../kernel/clock.ts";
import { createMetricPush } from "./metric-push.ts";
import { createMetrics } from "./metrics.ts";
import { genAi, type TracedInference } from "./traced-inference.ts";

const attribute = z.object({ key: z.string(), value: z.object({ stringValue: z.string() }) });
const dataPoint = z.object({
  attributes: z.array(attribute),
  startTimeUnixNano: z.string(),
  timeUnixNano: z.string(),
  asDouble: z.number().nullish(),
  count: z.number().optional(),
  sum: z.number().optional(),
  explicitBounds: z.array(z.number()).optional(),
  bucketCounts: z.array(z.number()).optional(),
});
const points = z.object({
  aggregationTemporality: z.number().optional(),
  isMonotonic: z.boolean().optional(),
  dataPoints: z.array(dataPoint),
});
const otlpMetric = z.object({
  name: z.string(),
  unit: z.string(),
  sum: points.optional(),
  gauge: points.optional(),
  histogram: points.optional(),
});
const otlpExport = z.object({
  resourceMetrics: z.array(
    z.object({
      resource: z.object({ attributes: z.array(attribute) }),
      scopeMetrics: z.array(z.object({ metrics: z.array(otlpMetric) })),
    }),
  ),
});

type Export = z.infer<typeof otlpExport>;

const plain = (attributes: z.infer<typeof attribute>[]): Record<string, string> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]));

/** A collector on loopback; `next` is the next export that comes. */
function startCollector(status = 200) {
  const arrived: { path: string; headers: Headers; body: Export }[] = [];
  let wake: () => void = () => undefined;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const body = otlpExport.parse(await request.json());
      arrived.push({ path: new URL(request.url).pathname, headers: request.headers, body });
      wake();
      return new Response("{}", { status, headers: { "content-type": "application/json" } });
    },
  });
  const next = async () => {
    while (arrived.length === 0) await new Promise<void>((resolve) => void (wake = resolve));
    return arrived.shift();
  };
  const target = (intervalMs: number) => ({
    endpoint: `http://127.0.0.1:${server.port}/v1/metrics`,
    headers: { "x-tenant": "t1" },
    intervalMs,
  });
  return { server, next, target };
}

const collectors: ReturnType<typeof startCollector>[] = [];
function collectorWith(status?: number) {
  const collector = startCollector(status);
  collectors.push(collector);
  return collector;
}
afterEach(async () => {
  for (const { server } of collectors.splice(0)) await server.stop(true);
});

const inference: TracedInference = {
  traceId: "0192f0c1a2b3c4d5e6f708192a3b4c5d",
  startMs: 1_700_000_000_000,
  endMs: 1_700_000_001_500,
  name: "chat acme/large",
  attributes: {
    [genAi.operationName]: "chat",
    [genAi.requestModel]: "acme/large",
    [genAi.usageInputTokens]: 120,
    [genAi.usageOutputTokens]: 90,
  },
  attempts: [
    { provider: "acme", startMs: 1_000, endMs: 1_200, status: 503, model: "large" },
    {
      provider: "mistral",
      startMs: 1_210,
      endMs: 2_490,
      status: 200,
      model: "large-v2",
      firstChunkSeconds: 0.25,
    },
  ],
};

const minute = 60_000;

function pushTo(target: ReturnType<ReturnType<typeof startCollector>["target"]>) {
  const metrics = createMetrics();
  const errors: unknown[] = [];
  const push = createMetricPush({
    target,
    serviceName: "gate",
    version: "9.9.9",
    instanceId: "node-1",
    definitions: metrics.definitions,
    clock: systemClock,
    onExportError: (error) => void errors.push(error),
  });
  return { metrics, errors, push };
}

/** What one export says of a metric. */
function metricOf(body: Export | undefined, name: string) {
  const metric = body?.resourceMetrics
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap(({ metrics }) => metrics)
    .find((one) => one.name === name);
  const data = metric?.sum ?? metric?.gauge ?? metric?.histogram;
  return { metric, points: data?.dataPoints ?? [] };
}

describe("the metric push", () => {
  test("exports every metric of the gateway with its process", async () => {
    const { next, target } = collectorWith();
    const { metrics, push } = pushTo(target(minute));
    metrics.request("/v1/models", 200).inc(3);
    metrics.gatewayOverhead("/v1/chat/completions").observe(0.0004);
    metrics.watchHoldsOpen(() => 5);
    await push.shutdown();
    const exported = await next();
    expect(exported?.path).toBe("/v1/metrics");
    expect(exported?.headers.get("x-tenant")).toBe("t1");
    expect(plain(exported?.body.resourceMetrics[0]?.resource.attributes ?? [])).toEqual({
      "service.name": "gate",
      "service.version": "9.9.9",
      "service.instance.id": "node-1",
    });
    const requests = metricOf(exported?.body, "switchyard_requests_total");
    expect(requests.metric?.sum).toMatchObject({ aggregationTemporality: 2, isMonotonic: true });
    expect(requests.points).toMatchObject([{ asDouble: 3 }]);
    expect(plain(requests.points[0]?.attributes ?? [])).toEqual({
      endpoint: "/v1/models",
      status: "2xx",
    });
    expect(metricOf(exported?.body, "switchyard_holds_open")).toMatchObject({
      metric: { gauge: {} },
      points: [{ asDouble: 5 }],
    });
    const overhead = metricOf(exported?.body, "switchyard_gateway_overhead_seconds");
    expect(overhead.metric).toMatchObject({ unit: "s", histogram: { aggregationTemporality: 2 } });
    const [point] = overhead.points;
    expect(point).toMatchObject({ count: 1, sum: 0.0004 });
    expect(point?.bucketCounts?.length).toBe((point?.explicitBounds?.length ?? 0) + 1);
    expect(point?.bucketCounts?.indexOf(1)).toBe(point?.explicitBounds?.indexOf(0.0005));
  });

  test("exports again at each interval, with cumulative sums", async () => {
    const { next, target } = collectorWith();
    const { metrics, push } = pushTo(target(20));
    metrics.rateLimited.inc();
    const first = metricOf((await next())?.body, "switchyard_rate_limited_total").points[0];
    metrics.rateLimited.inc();
    let later = first;
    while (later?.asDouble !== 2)
      later = metricOf((await next())?.body, "switchyard_rate_limited_total").points[0];
    expect(first?.asDouble).toBe(1);
    expect(later.startTimeUnixNano).toBe(first?.startTimeUnixNano ?? "");
    expect(Number(later.timeUnixNano)).toBeGreaterThan(Number(first?.timeUnixNano));
    await push.shutdown();
  });
});

describe("the GenAI metrics", () => {
  async function pushed(...inferences: TracedInference[]) {
    const { next, target } = collectorWith();
    const { push } = pushTo(target(minute));
    for (const one of inferences) push.recordInference(one);
    await push.shutdown();
    const body = (await next())?.body;
    return (name: string): Record<string, unknown>[] =>
      metricOf(body, name).points.map(({ attributes, sum, count }) => ({
        ...plain(attributes),
        sum,
        count,
      }));
  }
  const served = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "mistral_ai",
    "gen_ai.request.model": "large-v2",
  };

  test("record the duration of each attempt, and the error of a failed one", async () => {
    const points = await pushed(inference, inference);
    expect(points("gen_ai.client.operation.duration")).toEqual([
      {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "acme",
        "gen_ai.request.model": "large",
        "error.type": "503",
        sum: 0.4,
        count: 2,
      },
      { ...served, sum: 2.56, count: 2 },
    ]);
    expect(points("gen_ai.client.operation.time_to_first_chunk")).toEqual([
      { ...served, sum: 0.5, count: 2 },
    ]);
  });

  test("record tokens by type for the provider that served", async () => {
    const points = await pushed(inference);
    expect(points("gen_ai.client.token.usage")).toEqual([
      { ...served, "gen_ai.token.type": "input", sum: 120, count: 1 },
      { ...served, "gen_ai.token.type": "output", sum: 90, count: 1 },
    ]);
  });

  test("record nothing for a response from the cache", async () => {
    const points = await pushed({ ...inference, attempts: [] });
    expect(points("gen_ai.client.operation.duration")).toEqual([]);
    expect(points("gen_ai.client.token.usage")).toEqual([]);
  });

  test("record models beyond 200 as other", async () => {
    const attempt = { provider: "acme", startMs: 0, endMs: 1, status: 200 };
    const points = await pushed(
      ...Array.from({ length: 205 }, (_, index) => ({
        ...inference,
        attempts: [{ ...attempt, model: `m${index}` }],
      })),
    );
    const durations = points("gen_ai.client.operation.duration");
    expect(durations).toHaveLength(201);
    expect(durations.at(-1)).toMatchObject({ "gen_ai.request.model": "other", count: 5 });
  });
});

describe("a collector that returns errors", () => {
  test("is reported and does not block the shutdown", async () => {
    const { target } = collectorWith(400);
    const { errors, push } = pushTo(target(minute));
    await push.shutdown();
    expect(errors).toHaveLength(1);
  });

  test("is not called if none is configured", async () => {
    const push = createMetricPush({
      serviceName: "gate",
      version: "1",
      instanceId: "node-1",
      definitions: [],
      clock: systemClock,
    });
    expect(push.enabled).toBe(false);
    await push.shutdown();
  });
});

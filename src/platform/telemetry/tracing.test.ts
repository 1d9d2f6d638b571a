import { afterEach, describe, expect, test } from "bun:test";
import { z } from "zod";
import { genAi, type TracedInference } from "./traced-inference.ts";
import type { SpanOptions } from "./span-recorder.ts";
import { createTracing, readOtlpSettings } from "./tracing.ts";
import { parseTraceParent } from "./span-recorder.ts";

const otlpValue = z.object({
  stringValue: z.string().optional(),
  intValue: z.union([z.string(), z.number()]).optional(),
  doubleValue: z.number().optional(),
  boolValue: z.boolean().optional(),
  arrayValue: z.object({ values: z.array(z.object({ stringValue: z.string() })) }).optional(),
});
const otlpAttributes = z.array(z.object({ key: z.string(), value: otlpValue }));
const otlpSpan = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  startTimeUnixNano: z.string(),
  endTimeUnixNano: z.string(),
  attributes: otlpAttributes,
  links: z.array(z.object({ traceId: z.string(), spanId: z.string() })),
  status: z.object({ code: z.number(), message: z.string().optional() }),
});
const otlpExport = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: otlpAttributes }),
      scopeSpans: z.array(z.object({ spans: z.array(otlpSpan) })),
    }),
  ),
});

type OtlpSpan = z.infer<typeof otlpSpan>;

const plain = (attributes: z.infer<typeof otlpAttributes>): Record<string, unknown> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ??
        value.boolValue ??
        value.arrayValue?.values.map((item) => item.stringValue) ??
        value.doubleValue ??
        Number(value.intValue),
    ]),
  );

/** A collector on loopback that keeps what it is sent. */
function startCollector(status = 200) {
  const received: { path: string; headers: Headers; body: z.infer<typeof otlpExport> }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const body = otlpExport.parse(await request.json());
      received.push({ path: new URL(request.url).pathname, headers: request.headers, body });
      return new Response("{}", { status, headers: { "content-type": "application/json" } });
    },
  });
  const spans = (): OtlpSpan[] =>
    received
      .flatMap(({ body }) => body.resourceSpans)
      .flatMap((resource) => resource.scopeSpans)
      .flatMap((scope) => scope.spans);
  return { server, received, spans, url: `http://127.0.0.1:${server.port}/v1/traces` };
}

const traceId = "0192f0c1a2b3c4d5e6f708192a3b4c5d";
const inference: TracedInference = {
  traceId,
  startMs: 1_700_000_000_000,
  endMs: 1_700_000_001_500,
  name: "chat acme/large",
  attributes: {
    [genAi.operationName]: "chat",
    [genAi.providerName]: "beta",
    [genAi.requestModel]: "acme/large",
    [genAi.responseModel]: "large-v2",
    [genAi.usageInputTokens]: 120,
    [genAi.usageOutputTokens]: 90,
    [genAi.responseFinishReasons]: ["stop"],
    [genAi.requestMaxTokens]: undefined,
  },
  attempts: [
    {
      provider: "acme",
      startMs: 1_700_000_000_010,
      endMs: 1_700_000_000_200,
      status: 503,
      serverAddress: "acme.example",
    },
    {
      provider: "beta",
      startMs: 1_700_000_000_210,
      endMs: 1_700_000_001_490,
      status: 200,
      model: "large-v2",
      firstChunkSeconds: 0.25,
    },
  ],
};

const collectors: ReturnType<typeof startCollector>[] = [];
function collectorWith(status?: number) {
  const collector = startCollector(status);
  collectors.push(collector);
  return collector;
}
afterEach(async () => {
  for (const { server } of collectors.splice(0)) await server.stop(true);
});

const exported = (...inferences: TracedInference[]) => exportedWith({}, ...inferences);

async function exportedWith(
  options: Pick<SpanOptions, "continuesTraces">,
  ...inferences: TracedInference[]
) {
  const collector = collectorWith();
  const headers = { "x-tenant": "t1" };
  const tracing = createTracing({
    target: { endpoint: collector.url, headers },
    serviceName: "gate",
    version: "9.9.9",
    ...options,
  });
  for (const one of inferences) tracing.recordInference(one);
  await tracing.shutdown();
  const spans = collector.spans();
  const root = spans.find((span) => span.kind === 2);
  if (root === undefined) throw new Error("no server span arrived");
  return { collector, spans, root };
}

describe("the trace of a request", () => {
  test("is a server span with the gateway's trace id, its times and attributes", async () => {
    const { collector, root } = await exported(inference);
    expect(root).toMatchObject({
      traceId,
      name: "chat acme/large",
      startTimeUnixNano: "1700000000000000000",
      endTimeUnixNano: "1700000001500000000",
      links: [],
      status: { code: 0 },
    });
    expect(root.parentSpanId ?? "").toBe("");
    expect(plain(root.attributes)).toEqual({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "beta",
      "gen_ai.request.model": "acme/large",
      "gen_ai.response.model": "large-v2",
      "gen_ai.usage.input_tokens": 120,
      "gen_ai.usage.output_tokens": 90,
      "gen_ai.response.finish_reasons": ["stop"],
    });
    const [first] = collector.received;
    expect(first?.path).toBe("/v1/traces");
    expect(first?.headers.get("content-type")).toBe("application/json");
    expect(first?.headers.get("x-tenant")).toBe("t1");
    expect(plain(first?.body.resourceSpans[0]?.resource.attributes ?? [])).toEqual({
      "service.name": "gate",
      "service.version": "9.9.9",
    });
  });

  test("has a client span for each attempt, with an error status if it failed", async () => {
    const { spans, root } = await exported(inference);
    const attempts = spans.filter((span) => span.kind === 3);
    expect(
      attempts.map((span) => [span.name, span.traceId, span.parentSpanId, span.status.code]),
    ).toEqual([
      ["chat acme", traceId, root.spanId, 2],
      ["chat beta", traceId, root.spanId, 0],
    ]);
    expect(attempts[0]?.startTimeUnixNano).toBe("1700000000010000000");
    expect(plain(attempts[0]?.attributes ?? [])).toEqual({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "acme",
      "gen_ai.request.model": "acme/large",
      "server.address": "acme.example",
      "http.response.status_code": 503,
      "error.type": "503",
    });
    expect(plain(attempts[1]?.attributes ?? [])).toMatchObject({
      "gen_ai.request.model": "large-v2",
      "gen_ai.response.time_to_first_chunk": 0.25,
    });
  });

  test("has the code of the error, and its message without secrets", async () => {
    const error = { type: "upstream_exhausted", message: "sk-svc-v1-abcdefgh refused" };
    const { root } = await exported({ ...inference, error });
    expect(root.status).toEqual({ code: 2, message: "sk-svc-v1-[redacted] refused" });
    expect(plain(root.attributes)["error.type"]).toBe("upstream_exhausted");
  });
});

describe("a caller's traceparent", () => {
  test("of another trace becomes a link, and the gateway's trace id is kept", async () => {
    const parent = "00-11111111111111111111111111111111-2222222222222222-01";
    const { root } = await exported({ ...inference, parent });
    expect(root.traceId).toBe(traceId);
    expect(root.parentSpanId ?? "").toBe("");
    expect(root.links).toMatchObject([{ traceId: "1".repeat(32), spanId: "2".repeat(16) }]);
  });

  test("of the gateway's own trace becomes the parent", async () => {
    const { root } = await exported({ ...inference, parent: `00-${traceId}-2222222222222222-01` });
    expect(root).toMatchObject({ traceId, parentSpanId: "2".repeat(16), links: [] });
  });

  test("is continued where the operator says so", async () => {
    const parent = "00-11111111111111111111111111111111-2222222222222222-01";
    const { root, spans } = await exportedWith({ continuesTraces: true }, { ...inference, parent });
    expect(root).toMatchObject({ parentSpanId: "2".repeat(16), links: [] });
    expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set(["1".repeat(32)]));
    const { root: without } = await exportedWith({ continuesTraces: true }, inference);
    expect(without.traceId).toBe(traceId);
  });

  test("is ignored if it is invalid", async () => {
    const { root } = await exported({ ...inference, parent: "00-xyz" });
    expect(root).toMatchObject({ traceId, links: [] });
  });

  test.each([
    ["00-11111111111111111111111111111111-2222222222222222-01", true],
    ["cc-11111111111111111111111111111111-2222222222222222-00-future", true],
    ["00-11111111111111111111111111111111-2222222222222222-01-more", false],
    ["ff-11111111111111111111111111111111-2222222222222222-01", false],
    ["00-00000000000000000000000000000000-2222222222222222-01", false],
    ["00-11111111111111111111111111111111-0000000000000000-01", false],
    ["00-1111111111111111111111111111111A-2222222222222222-01", false],
    ["", false],
  ])("%j has the validity %p", (header, valid) =>
    expect(parseTraceParent(header) !== undefined).toBe(valid),
  );
});

describe("traces of many requests", () => {
  test("keep their own trace ids, and are all exported at shutdown", async () => {
    const ids = Array.from({ length: 700 }, (_, index) => `${index}`.padStart(32, "a"));
    const { spans } = await exported(...ids.map((id) => ({ ...inference, traceId: id })));
    expect(spans).toHaveLength(2_100);
    expect(
      spans
        .filter((span) => span.kind === 2)
        .map((span) => span.traceId)
        .sort(),
    ).toEqual(ids.toSorted());
  });
});

describe("a trace collector that returns errors", () => {
  test("is reported and affects neither requests nor the shutdown", async () => {
    const errors: unknown[] = [];
    const { url } = collectorWith(400);
    const onExportError = (error: unknown): void => void errors.push(error);
    const tracing = createTracing({
      target: { endpoint: url, headers: {} },
      serviceName: "gate",
      version: "1",
      onExportError,
    });
    tracing.recordInference(inference);
    await tracing.shutdown();
    expect(errors).toHaveLength(1);
  });
});

test("tracing is disabled without a collector", async () => {
  const tracing = createTracing({ serviceName: "gate", version: "1" });
  expect(tracing.enabled).toBe(false);
  tracing.recordInference(inference);
  await tracing.shutdown();
});

describe("readOtlpSettings", () => {
  test("returns no endpoint without settings", () =>
    expect(readOtlpSettings({})).toEqual({ serviceName: "switchyard" }));

  test.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318/" }, "http://c:4318"],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318/otel" }, "http://c:4318/otel"],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c", OTEL_SDK_DISABLED: "true" }, undefined],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "" }, undefined],
  ])("completes %j to the endpoints of both signals under %p", (environment, base) => {
    const { traces, metrics } = readOtlpSettings(environment);
    expect(traces?.endpoint).toBe(base && `${base}/v1/traces`);
    expect(metrics?.endpoint).toBe(base && `${base}/v1/metrics`);
  });

  test.each([
    ["TRACES", "traces"],
    ["METRICS", "metrics"],
  ] as const)("reads the separate variables of %s", (name, signal) => {
    const base = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c" };
    const own = { ...base, [`OTEL_EXPORTER_OTLP_${name}_ENDPOINT`]: "http://t/own" };
    expect(readOtlpSettings(own)[signal]?.endpoint).toBe("http://t/own");
    const none = readOtlpSettings({ ...base, [`OTEL_${name}_EXPORTER`]: "none" });
    expect(none[signal]).toBeUndefined();
    expect(Object.keys(none)).toHaveLength(3);
  });

  test("reads headers as percent-encoded name=value pairs, those of the signal last", () => {
    const { traces, metrics, serviceName } = readOtlpSettings({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://c",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic%20abc==, x-a=1,broken",
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: "x-a=2",
      OTEL_SERVICE_NAME: "edge",
    });
    expect(traces?.headers).toEqual({ authorization: "Basic abc==", "x-a": "2" });
    expect(metrics?.headers).toEqual({ authorization: "Basic abc==", "x-a": "1" });
    expect(serviceName).toBe("edge");
  });

  test("reads attributes of the service, whose name OTEL_SERVICE_NAME replaces", () => {
    const base = { OTEL_RESOURCE_ATTRIBUTES: "service.name=a,deployment.environment.name=prod" };
    expect(readOtlpSettings(base)).toEqual({
      serviceName: "a",
      resource: { "deployment.environment.name": "prod" },
    });
    expect(readOtlpSettings({ ...base, OTEL_SERVICE_NAME: "b" }).serviceName).toBe("b");
  });

  test("exports metrics every minute by default, or at the configured interval", () => {
    const base = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c" };
    expect(readOtlpSettings(base).metrics?.intervalMs).toBe(60_000);
    const often = { ...base, OTEL_METRIC_EXPORT_INTERVAL: "5000" };
    expect(readOtlpSettings(often).metrics?.intervalMs).toBe(5_000);
  });
});

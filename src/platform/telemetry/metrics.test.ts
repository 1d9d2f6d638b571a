import { describe, expect, test } from "bun:test";
import { createMetrics, statusClass, type FinishedInference } from "./metrics.ts";
import { MetricFamily, newHistogram } from "./metric-family.ts";

const finished: FinishedInference = {
  endpoint: "/v1/chat/completions",
  status: 200,
  provider: "acme",
  workspace: "ws_1",
  key: "key_1",
  model: "acme/large",
  outcome: "completed",
  durationMs: 42,
  overheadMs: 0.4,
  firstTokenMs: 12,
  tokens: { inputTokens: 120, cacheReadTokens: 0, outputTokens: 90 },
  chargedNanoUsd: 195_000n,
};

describe("exposition", () => {
  test("shows a finished request in every series it belongs to", async () => {
    const metrics = createMetrics();
    metrics.recordInference(finished);
    const lines = (await metrics.text()).split("\n");
    expect(lines).toEqual(
      expect.arrayContaining([
        `switchyard_requests_total{endpoint="/v1/chat/completions",status="2xx"} 1`,
        `switchyard_inference_requests_total{provider="acme",model="acme/large",outcome="completed"} 1`,
        `switchyard_request_duration_seconds_bucket{le="0.025",endpoint="/v1/chat/completions"} 0`,
        `switchyard_request_duration_seconds_bucket{le="0.05",endpoint="/v1/chat/completions"} 1`,
        `switchyard_request_duration_seconds_bucket{le="+Inf",endpoint="/v1/chat/completions"} 1`,
        `switchyard_request_duration_seconds_sum{endpoint="/v1/chat/completions"} 0.042`,
        `switchyard_request_duration_seconds_count{endpoint="/v1/chat/completions"} 1`,
        `switchyard_gateway_overhead_seconds_bucket{le="0.0005",endpoint="/v1/chat/completions"} 1`,
        `switchyard_time_to_first_token_seconds_count{provider="acme"} 1`,
        `switchyard_tokens_total{provider="acme",kind="input"} 120`,
        `switchyard_tokens_total{provider="acme",kind="output"} 90`,
        `switchyard_charged_nano_usd_total 195000`,
        `switchyard_rate_limited_total 0`,
        `# TYPE switchyard_request_duration_seconds histogram`,
        `# TYPE switchyard_requests_total counter`,
        `# TYPE switchyard_open_streams gauge`,
      ]),
    );
    expect(lines.filter((line) => line.startsWith("process_cpu_seconds_total"))).toHaveLength(1);
    expect(metrics.contentType).toStartWith("text/plain; version=0.0.4");
  });

  test("measures the process without a walk through its heap, for every registry", async () => {
    for (const metrics of [createMetrics(), createMetrics()]) {
      const text = await metrics.text();
      expect(text).toContain("process_resident_memory_bytes ");
      expect(text).toContain("nodejs_heap_size_used_bytes ");
      expect(text).not.toContain("nodejs_heap_space_size");
    }
  });

  test("keeps counts between scrapes and reads gauges at each scrape", async () => {
    const metrics = createMetrics();
    let holds = 3;
    metrics.watchHoldsOpen(() => holds);
    metrics.watchCommitQueuePending(() => 7);
    metrics.openStreams.inc();
    metrics.requestsInFlight.inc();
    metrics.requestsInFlight.inc();
    metrics.requestsInFlight.dec();
    metrics.error("insufficient_balance").inc();
    metrics.upstreamAttempt("acme", "failed").inc(2);
    expect(await metrics.text()).toContain("switchyard_holds_open 3\n");
    holds = 0;
    metrics.rateLimited.inc();
    metrics.error("insufficient_balance").inc();
    const text = await metrics.text();
    for (const line of [
      "switchyard_holds_open 0",
      "switchyard_commit_queue_pending 7",
      "switchyard_open_streams 1",
      "switchyard_requests_in_flight 1",
      "switchyard_rate_limited_total 1",
      `switchyard_errors_total{code="insufficient_balance",fault="client"} 2`,
      `switchyard_upstream_attempts_total{provider="acme",outcome="failed"} 2`,
    ])
      expect(text).toContain(`${line}\n`);
  });

  test("names no gauge like a counter, and no counter unlike one", async () => {
    const text = await createMetrics().text();
    const types = [...text.matchAll(/^# TYPE (\S+) (gauge|counter)$/gm)];
    const wrong = types.filter(
      ([, name, type]) => name?.endsWith("_total") !== (type === "counter"),
    );
    expect(types.length).toBeGreaterThan(20);
    expect(wrong.map(([line]) => line)).toEqual([]);
  });

  test("escapes label values", async () => {
    const metrics = createMetrics();
    metrics.inference('ac"me\n', "a\\b", "failed").inc();
    expect(await metrics.text()).toContain(
      `{provider="ac\\"me\\n",model="a\\\\b",outcome="failed"} 1`,
    );
  });
});

describe("cardinality", () => {
  test("is capped for models, and models beyond the cap count as other", async () => {
    const metrics = createMetrics({ maxModelLabels: 2 });
    for (const model of ["a", "b", "c", "d", "a"]) metrics.recordInference({ ...finished, model });
    metrics.inference("acme", "e", "completed").inc();
    const models = (await metrics.text()).match(/inference_requests_total\{.*/g) ?? [];
    expect(models).toEqual([
      `inference_requests_total{provider="acme",model="a",outcome="completed"} 2`,
      `inference_requests_total{provider="acme",model="b",outcome="completed"} 1`,
      `inference_requests_total{provider="acme",model="other",outcome="completed"} 3`,
    ]);
  });
});

describe("metric cells", () => {
  test("are the same for the same labels", () => {
    const metrics = createMetrics();
    expect(metrics.inference("p", "m", "cut")).toBe(metrics.inference("p", "m", "cut"));
    expect(metrics.inference("p", "m", "cut")).not.toBe(metrics.inference("p", "m", "completed"));
    expect(metrics.tokens("p", "outputTokens")).not.toBe(metrics.tokens("p", "inputTokens"));
  });

  test("of a histogram use inclusive bounds, count negatives in the first bucket, and drop NaN", () => {
    const cell = newHistogram([1, 2, 4]);
    for (const value of [-1, 0, 1, 1.5, 2, 4, 4.1, Infinity, Number.NaN]) cell.observe(value);
    expect(cell.counts).toEqual([3, 2, 1, 2]);
  });

  test("of a family without labels exist before the first count", () => {
    expect(new MetricFamily([], () => 1).entries()).toEqual([{ labels: {}, cell: 1 }]);
    expect(new MetricFamily(["a"], () => 1).entries()).toEqual([]);
  });

  test.each([
    [200, "2xx"],
    [101, "1xx"],
    [404, "4xx"],
    [499, "4xx"],
    [503, "5xx"],
    [0, "1xx"],
    [999, "5xx"],
  ] as const)("of status %i have the class %s", (status, expected) =>
    expect(statusClass(status)).toBe(expected),
  );
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chatBody } from "./load/chat-request.ts";
import { runClosedLoop } from "./load/closed-loop.ts";
import type { ClosedLoopJob, LoadTarget } from "./load/job.ts";
import { LatencyHistogram } from "./load/latency-histogram.ts";
import { openStreams } from "./load/open-streams.ts";
import { EventCounter, ResponseReader } from "./load/response-reader.ts";
import {
  completionResponse,
  contentEvents,
  eventsPerStream,
  wholeStream,
} from "./mock-responses.ts";
import { startMockUpstream, type MockUpstream } from "./mock-upstream.ts";
import { alignedTable, failureLines, reportText } from "./report.ts";
import { figuresOf, median, medianFigures, type PeerResults } from "./results.ts";
import { adjustedPlan, fullPlan } from "./scenarios.ts";
import { cpuTimeMs, memoryOf, processTree } from "./process/proc-stat.ts";

let mock: MockUpstream;
beforeAll(() => void (mock = startMockUpstream({ intervalMs: 1 })));
afterAll(() => mock.stop());

const target = (options: Partial<LoadTarget> = {}): LoadTarget => ({
  port: mock.port,
  path: "/v1/chat/completions",
  headers: { authorization: "Bearer x" },
  model: "large",
  stream: false,
  bodyBytes: 1_000,
  ...options,
});

const job = (options: Partial<ClosedLoopJob> = {}): ClosedLoopJob => ({
  kind: "closed-loop",
  target: target(),
  connections: 8,
  warmupMs: 0,
  durationMs: 20_000,
  maxRequests: 300,
  watchPids: [process.pid],
  ...options,
});

describe("the load generator with the mock upstream", () => {
  test("counts 300 requests on both sides and times each of them", async () => {
    const before = mock.stats().requests;
    const result = await runClosedLoop(job());
    expect(result).toMatchObject({ completed: 300, errors: 0 });
    expect(mock.stats().requests - before).toBe(300);
    expect(result.latency.count).toBe(300);
    expect(result.latency.p50Us).toBeGreaterThan(0);
    expect(result.latency.p50Us).toBeLessThanOrEqual(result.latency.p99Us);
    expect(result.latency.p99Us).toBeLessThanOrEqual(result.latency.maxUs);
  });

  test("sends one-megabyte bodies in full", async () => {
    const large = target({ bodyBytes: 1_000_000 });
    const result = await runClosedLoop(job({ target: large, connections: 3, maxRequests: 9 }));
    expect(result).toMatchObject({ completed: 9, errors: 0 });
  });

  test("counts every event of parallel streams", async () => {
    const result = await runClosedLoop(job({ target: target({ stream: true }), maxRequests: 40 }));
    expect(result).toMatchObject({ completed: 40, errors: 0, events: 40 * eventsPerStream });
    expect(result.firstByte.count).toBe(40);
  });

  test("reads the send time of paced events", async () => {
    const paced = target({ stream: true, model: "paced" });
    const result = await runClosedLoop(job({ target: paced, connections: 2, maxRequests: 2 }));
    expect(result).toMatchObject({ completed: 2, errors: 0, events: 2 * eventsPerStream });
    expect(result.eventDelay.count).toBeGreaterThan(contentEvents);
    expect(result.eventDelay.p50Us).toBeLessThan(1_000_000);
    expect(mock.stats().openStreams).toBe(0);
  });

  test("keeps to a request rate", async () => {
    const result = await runClosedLoop(job({ ratePerSecond: 2_000, maxRequests: 50 }));
    expect(result).toMatchObject({ completed: 50, errors: 0 });
    expect(result.durationMs).toBeGreaterThan(20);
  });

  test("reports the error instead of a figure", async () => {
    const refuse = (): Response => new Response("no credit left", { status: 402 });
    const refusing = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: refuse });
    const result = await runClosedLoop(
      job({ target: target({ port: refusing.port ?? 0 }), maxRequests: 20 }),
    );
    await refusing.stop(true);
    expect(result).toMatchObject({
      completed: 0,
      errors: 20,
      firstError: "status 402: no credit left",
    });
  });

  test("holds idle streams open until they are closed, and the mock sees them close", async () => {
    const held = await openStreams({
      kind: "open-streams",
      target: target({ stream: true, model: "quiet" }),
      connections: 150,
      timeoutMs: 10_000,
    });
    expect(held.result).toEqual({ open: 150, errors: 0 });
    expect(mock.stats().openStreams).toBe(150);
    held.close();
    while (mock.stats().openStreams > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(mock.stats().openStreams).toBe(0);
  });
});

describe("request and response bodies", () => {
  test.each([1_000, 100_000, 1_000_000])("of %i bytes have that size", (bodyBytes) => {
    const body = chatBody({ model: "mock/large", stream: true, bodyBytes });
    expect(Buffer.byteLength(body)).toBe(bodyBytes);
    expect(JSON.parse(body)).toMatchObject({ model: "mock/large", stream: true });
  });

  test("of the mock are a chat completion of about 700 bytes with usage", () => {
    const text = completionResponse.toString();
    const body = text.slice(text.indexOf("\r\n\r\n") + 4);
    expect(body.length).toBeGreaterThan(650);
    expect(body.length).toBeLessThan(750);
    expect(JSON.parse(body)).toMatchObject({ usage: { total_tokens: 210 } });
  });
});

describe("the response reader", () => {
  function readInPieces(bytes: Buffer, size: number) {
    const seen: { statuses: number[]; body: string; ends: number } = {
      statuses: [],
      body: "",
      ends: 0,
    };
    const counter = new EventCounter();
    const reader = new ResponseReader({
      onHead: (status) => void seen.statuses.push(status),
      onBody: (piece) => {
        seen.body += piece.toString("latin1");
        counter.feed(piece);
      },
      onEnd: () => void (seen.ends += 1),
    });
    for (let at = 0; at < bytes.length; at += size) reader.feed(bytes.subarray(at, at + size));
    return { ...seen, events: counter.count };
  }

  test.each([1, 2, 3, 7, 64, 1_000_000])("reads the same from pieces of %i bytes", (size) => {
    const whole = readInPieces(Buffer.concat([wholeStream, completionResponse]), 1_000_000);
    expect(whole).toMatchObject({ statuses: [200, 200], ends: 2, events: eventsPerStream });
    expect(readInPieces(Buffer.concat([wholeStream, completionResponse]), size)).toEqual(whole);
  });

  test("throws on bytes that are not an HTTP response", () => {
    expect(() => readInPieces(Buffer.from("SSH-2.0-x\r\n\r\n"), 100)).toThrow(
      "no HTTP/1.1 response",
    );
  });
});

describe("the latency histogram", () => {
  test("is exact below 128 microseconds", () => {
    const histogram = new LatencyHistogram();
    for (let value = 1; value <= 100; value += 1) histogram.record(value);
    expect(histogram.summary()).toEqual({
      count: 100,
      meanUs: 50.5,
      p50Us: 50,
      p90Us: 90,
      p99Us: 99,
      maxUs: 100,
    });
  });

  const samples = [128, 129, 255, 256, 1_000, 12_345, 999_999, 2 ** 31 - 1];
  test.each(samples)("returns %i within 0.8 per cent", (value) => {
    const histogram = new LatencyHistogram();
    histogram.record(value);
    histogram.record(2 ** 31 - 1);
    expect(Math.abs(histogram.quantileUs(0.5) - value) / value).toBeLessThanOrEqual(0.008);
  });

  test("returns the same quantiles as sorting for skewed values", () => {
    const histogram = new LatencyHistogram();
    const values = Array.from({ length: 5_000 }, (_, index) =>
      Math.round(50 + ((index * 7919) % 5_000 ** 1.1)),
    );
    for (const value of values) histogram.record(value);
    const sorted = values.toSorted((a, b) => a - b);
    for (const quantile of [0.01, 0.5, 0.9, 0.99]) {
      const exact = sorted[Math.ceil(quantile * sorted.length) - 1] ?? 0;
      expect(Math.abs(histogram.quantileUs(quantile) - exact) / exact).toBeLessThanOrEqual(0.008);
    }
  });

  test("has zeros when it is empty, and counts negative values as zero", () => {
    const histogram = new LatencyHistogram();
    expect(histogram.summary()).toEqual({
      count: 0,
      meanUs: 0,
      p50Us: 0,
      p90Us: 0,
      p99Us: 0,
      maxUs: 0,
    });
    histogram.record(-5);
    expect(histogram.quantileUs(1)).toBe(0);
  });
});

describe.skipIf(process.platform !== "linux")("process figures", () => {
  test("of this process are available", () => {
    expect(processTree(process.pid)).toContain(process.pid);
    expect(cpuTimeMs([process.pid])).toBeGreaterThan(0);
    const memory = memoryOf([process.pid]);
    expect(memory?.rssKb).toBeGreaterThan(1_000);
    expect(memory?.pssKb).toBeLessThanOrEqual((memory?.rssKb ?? 0) + 1_000);
  });

  test("of a process that has ended are undefined", () => {
    expect(cpuTimeMs([2 ** 22 + 1])).toBeUndefined();
    expect(memoryOf([2 ** 22 + 1])).toBeUndefined();
  });
});

describe("a benchmark plan", () => {
  test("measures the named scenarios for the requested rounds, in proportional time", () => {
    const { scenarios, rounds, budgetMs } = adjustedPlan(fullPlan, {
      rounds: 6,
      names: ["1 KB", "stream paced, 50/s"],
    });
    expect(scenarios.map(({ name }) => name)).toEqual([
      "1 KB, 500/s",
      "1 KB, c10",
      "1 KB, c200",
      "1 KB, 300/s",
      "stream paced, 50/s",
    ]);
    expect({ rounds, budgetMs }).toEqual({ rounds: 6, budgetMs: 2 * fullPlan.budgetMs });
  });

  test("is unchanged without options", () => {
    expect(adjustedPlan(fullPlan, { rounds: undefined, names: [] })).toEqual(fullPlan);
  });

  test("is refused without scenarios or rounds", () => {
    expect(() => adjustedPlan(fullPlan, { rounds: undefined, names: ["2 KB"] })).toThrow(
      "no scenario's name begins with 2 KB",
    );
    expect(() => adjustedPlan(fullPlan, { rounds: 0, names: [] })).toThrow("rounds");
  });
});

describe("figures", () => {
  const latency = (p50Us: number) => ({
    count: 1,
    meanUs: 0,
    p50Us,
    p90Us: 0,
    p99Us: 2 * p50Us,
    maxUs: 0,
  });
  const window = (completed: number, p50Us: number, cpuMs = 500) => ({
    durationMs: 1_000,
    completed,
    errors: 0,
    latency: latency(p50Us),
    firstByte: latency(p50Us),
    events: 0,
    eventDelay: latency(0),
    cpuMs,
  });
  const [, scenario] = fullPlan.scenarios;
  if (scenario === undefined) throw new Error("the plan has no scenarios");

  test("of a window are rates, CPU time per request and latencies against the baseline", () => {
    expect(
      figuresOf(scenario, { result: window(10_000, 300), baseline: window(50_000, 100) }),
    ).toMatchObject({
      requestsPerSecond: 10_000,
      cpuUsPerRequest: 50,
      requestsPerCpuSecond: 20_000,
      addedP50Us: 200,
      addedP99Us: 400,
    });
  });

  test("leave out the CPU time when the clock ticks are too coarse", () => {
    expect(
      figuresOf(scenario, { result: window(10_000, 300, 40), baseline: undefined }),
    ).toMatchObject({ cpuUsPerRequest: undefined });
  });

  test("of rounds are medians", () => {
    const rounds = [3, 1, 2].map((times) =>
      figuresOf(scenario, {
        result: window(1_000 * times, 100 * times),
        baseline: undefined,
        rssKb: 1_024 * times,
      }),
    );
    expect(medianFigures(rounds)).toMatchObject({
      rssKb: 2_048,
      requestsPerSecond: 2_000,
      p50Us: 200,
      errors: 0,
    });
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });

  test("are printed in aligned columns with ratios, and failures as text", () => {
    const peer = (name: string, completed: number): PeerResults => ({
      name,
      version: "1",
      scenarios: {
        [scenario.name]: figuresOf(scenario, {
          result: window(completed, 100),
          baseline: undefined,
        }),
        large: { failure: "status 413" },
      },
    });
    const peers = [peer("gateway power", 10_000), peer("nginx", 40_000)];
    expect(reportText(peers)).toMatch(/gateway power, requests per CPU-second +1 KB, c10 +0\.25/);
    expect(failureLines(peers)).toContain("nginx, large: status 413");
    expect(
      alignedTable([
        ["a", "b", "c"],
        ["aa", "bb", "100"],
      ]),
    ).toBe("a   b     c\naa  bb  100");
  });
});

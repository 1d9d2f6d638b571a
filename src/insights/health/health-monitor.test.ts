import { expect, test } from "bun:test";
import {
  type ComponentStatus,
  apiComponent,
  providersComponent,
  routingComponent,
  smokeComponent,
  statusOfParts,
  trafficStatus,
} from "./components.ts";
import { overallStatus } from "./health-monitor.ts";
import type { RoutingState } from "./provider-health.ts";

const sums = (requests: number, errors: number) => ({
  requests,
  errors,
  latencyMs: 100,
  timed: 4,
  promptTokens: 300,
  cachedTokens: 100,
});

test.each([
  [4, 4, "no_signal"],
  [5, 0, "healthy"],
  [100, 4, "healthy"],
  [100, 5, "degraded"],
  [100, 49, "degraded"],
  [100, 50, "down"],
] as const)("%d requests with %d errors are %s", (requests, errors, expected) => {
  expect(trafficStatus({ requests, errors })).toBe(expected);
});

/**
 * api, routing, providers, smoke tests, workflows, and the whole; a dash is a component that does
 * not apply.
 */
const overallTable = `
  healthy    healthy  healthy    healthy    healthy   healthy
  healthy    -        no_signal  -          -         healthy
  no_signal  healthy  no_signal  -          healthy   no_signal
  healthy    partial  healthy    healthy    healthy   partial
  healthy    healthy  partial    healthy    healthy   partial
  no_signal  healthy  no_signal  down       healthy   partial
  healthy    healthy  healthy    healthy    degraded  partial
  degraded   partial  partial    partial    partial   degraded
  healthy    down     down       healthy    healthy   down
  down       healthy  down       healthy    healthy   down`;

test.each(
  overallTable
    .trim()
    .split("\n")
    .map((row) => row.trim().split(/\s+/)),
)("api %s, routing %s, providers %s, smoke tests %s, workflows %s: overall %s", (...row) => {
  const [api, routing, providers, smoke, workflows] = row
    .slice(0, 5)
    .map((status) => (status === "-" ? undefined : (status as ComponentStatus)));
  expect(
    overallStatus({
      api: api ?? "no_signal",
      routing,
      around: [providers, smoke, workflows],
    }) as string,
  ).toBe(row[5] ?? "");
});

test("statusOfParts is partial if at least one part is healthy and another is down", () => {
  expect(statusOfParts([])).toBe("no_signal");
  expect(statusOfParts(["no_signal", "healthy"])).toBe("healthy");
  expect(statusOfParts(["healthy", "down"])).toBe("partial");
  expect(statusOfParts(["degraded", "down"])).toBe("degraded");
  expect(statusOfParts(["down", "down", "no_signal"])).toBe("down");
});

test("the api component has the documented fields", () => {
  expect(apiComponent(sums(10, 1)).data).toEqual({
    requests_1h: 10,
    error_rate: 0.1,
    latency_ms: { avg: 25 },
    cache_hit_rate: 0.3333,
  });
  const nothing = {
    requests: 0,
    errors: 0,
    latencyMs: 0,
    timed: 0,
    promptTokens: 0,
    cachedTokens: 0,
  };
  expect(apiComponent(nothing).data).toEqual({
    requests_1h: 0,
    error_rate: 0,
    latency_ms: { avg: 0 },
    cache_hit_rate: 0,
  });
});

const states = (by: Record<string, RoutingState[]>) => (id: string) => by[id] ?? [];

test("an excluded provider is down whatever its traffic; a deprioritized one has its traffic's status", () => {
  const traffic = new Map(
    ["well", "gone", "spent", "untested", "last"].map((id) => [id, sums(100, 0)]),
  );
  const { status, data } = providersComponent(
    traffic,
    states({
      gone: ["quarantined"],
      spent: ["budget_exhausted"],
      untested: ["excluded", "deprioritized"],
      last: ["deprioritized"],
    }),
  );
  expect(data.providers.map((row) => `${row.name} ${row.status}`)).toEqual([
    "gone down",
    "last healthy",
    "spent down",
    "untested down",
    "well healthy",
  ]);
  expect(status).toBe("partial");
  expect(Object.keys(data.providers[0] ?? {})).toEqual([
    "name",
    "status",
    "description",
    "latency_ms",
    "error_rate",
    "requests_1h",
  ]);
});

test("the routing component counts every state, and lists a provider once for each of its states", () => {
  const providers = ["a", "b", "c"].map((id) => ({
    id,
    name: id.toUpperCase(),
    logo: `/logos/${id}.svg`,
  }));
  const component = routingComponent(
    providers,
    states({ a: ["budget_exhausted", "quarantined"], b: ["deprioritized"] }),
  );
  expect(component).toMatchObject({
    status: "partial",
    data: {
      summary: {
        total: 3,
        healthy: 1,
        deprioritized: 1,
        excluded: 0,
        quarantined: 1,
        budget_exhausted: 1,
      },
      degraded: [
        { id: "a", name: "A", logo: "/logos/a.svg", state: "budget_exhausted" },
        { id: "a", name: "A", logo: "/logos/a.svg", state: "quarantined" },
        { id: "b", name: "B", logo: "/logos/b.svg", state: "deprioritized" },
      ],
    },
  });
  expect(routingComponent(providers, () => ["excluded"])?.status).toBe("down");
  expect(routingComponent(providers, () => ["deprioritized"])?.status).toBe("partial");
  expect(routingComponent([], () => [])).toBeNull();
});

const dayMs = 86_400_000;
const result = (outcome: "passed" | "failed" | "skipped") => ({
  providerId: "p",
  atMs: 0,
  outcome,
  latencyMs: null,
  message: null,
});

test("smoke tests are stale when the last run is older than two days", () => {
  const after = (nowMs: number) => smokeComponent([result("passed")], { lastRunMs: 0, nowMs });
  expect(after(2 * dayMs)).toMatchObject({ status: "healthy", data: { stale: false } });
  expect(after(2 * dayMs + 1)).toMatchObject({ status: "degraded", data: { stale: true } });
  expect(smokeComponent([], { lastRunMs: undefined, nowMs: dayMs })).toMatchObject({
    status: "no_signal",
    data: {
      total: 0,
      passed: 0,
      failed: 0,
      skipped: 0,
      last_run: null,
      stale: false,
      cadence: "17 4 * * *",
    },
  });
  expect(
    smokeComponent([result("passed"), result("failed"), result("skipped")], {
      lastRunMs: 0,
      nowMs: 0,
    }),
  ).toMatchObject({
    status: "partial",
    data: { total: 3, passed: 1, failed: 1, skipped: 1, last_run: "1970-01-01T00:00:00.000Z" },
  });
  expect(smokeComponent([result("failed")], { lastRunMs: 0, nowMs: 0 }).status).toBe("down");
});

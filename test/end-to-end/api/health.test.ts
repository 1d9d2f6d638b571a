import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "bun:test";
import { FakeClock } from "../../support/fake-clock.ts";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import {
  type FaultUpstream,
  refusingBaseUrl,
  startFaultUpstream,
} from "../../support/upstream/fault-upstream.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { at, listAt, numberAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";
import { allEngines } from "./two-workspaces.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const pricing = { prompt: "0.50", completion: "1.50" };
const from = (id: string, baseUrl: string, fields: Record<string, unknown> = {}) =>
  provider({
    id,
    name: id.toUpperCase(),
    base_url: baseUrl,
    dialect: "openai-chat",
    api_key: "k",
    models: [{ id: `acme/${id}`, pricing }],
    ...fields,
  });

async function open({
  providers = [],
  url,
  clock = new FakeClock(),
}: {
  providers?: ReturnType<typeof provider>[];
  url?: string;
  clock?: FakeClock;
}): Promise<{ gateway: TestGateway; clock: FakeClock }> {
  const gateway = await startGateway(
    { providers, ...(url === undefined ? {} : { storageUrl: url }) },
    { clock },
  );
  ends.push(() => gateway.stop());
  return { gateway, clock };
}

async function upstreamThatEnds(): Promise<FaultUpstream> {
  const upstream = await startFaultUpstream();
  ends.push(() => upstream.stop());
  return upstream;
}

const snapshotOf = async (gateway: TestGateway): Promise<unknown> =>
  (await fetch(`${gateway.baseUrl}/health`)).json();

const ask = async (gateway: TestGateway, model: string, times: number): Promise<void> => {
  for (let count = 0; count < times; count += 1)
    await (await gateway.post("/chat/completions", chatRequest({ model }))).text();
};

test("GET /health is public and cacheable, and every component has the documented members", async () => {
  const { gateway } = await open({ providers: [from("well", (await upstreamThatEnds()).baseUrl)] });
  await ask(gateway, "acme/well", 5);
  const response = await fetch(`${gateway.baseUrl}/health`);
  expect(response.status).toBe(200);
  expect(response.headers.get("cache-control")).toBe(
    "public, max-age=60, s-maxage=300, stale-while-revalidate=600",
  );
  const body: unknown = await response.json();
  expect(Object.keys(body as object)).toEqual([
    "status",
    "description",
    "version",
    "checked_at",
    "components",
    "events",
  ]);
  expect(body).toMatchObject({
    status: "healthy",
    version: "0.0.0-test",
    checked_at: "2026-11-21T12:00:00.000Z",
  });
  const components = at(body, "components") as Record<string, object | null>;
  expect(Object.keys(components)).toEqual([
    "api",
    "providers",
    "smoke_tests",
    "workflows",
    "routing",
    "postgres",
    "clickhouse",
  ]);
  for (const component of Object.values(components)) {
    if (component !== null)
      expect(Object.keys(component).sort()).toEqual(["data", "description", "note", "status"]);
  }
  expect(components["smoke_tests"]).toBeNull();
  expect(at(body, "components.api.data")).toEqual({
    requests_1h: 5,
    error_rate: 0,
    latency_ms: { avg: 0 },
    cache_hit_rate: 0,
  });
  expect(at(body, "components.routing.data.summary")).toEqual({
    total: 1,
    healthy: 1,
    deprioritized: 0,
    excluded: 0,
    quarantined: 0,
    budget_exhausted: 0,
  });
  expect(Object.keys(at(body, "components.workflows.data") as object)).toEqual([
    "healthy",
    "stale",
    "failing",
    "never_ran",
    "workflows",
  ]);
  expect(listAt(body, "events")).toEqual([
    { at: expect.any(String) as unknown, upstream_id: "well", from: "unknown", to: "healthy" },
  ]);
});

test("outages count as errors; refused credentials, invalid requests and rate limits do not", async () => {
  const upstream = await upstreamThatEnds();
  const { gateway, clock } = await open({ providers: [from("sick", upstream.baseUrl)] });
  const rateAfter = async (status: number): Promise<number> => {
    clock.advance(3_700_000);
    upstream.script(json(chatError("no"), { status }));
    await ask(gateway, "acme/sick", 1);
    return numberAt(await snapshotOf(gateway), "components.api.data.error_rate");
  };
  const rates: Record<number, number> = {};
  for (const status of [400, 401, 403, 404, 410, 422, 429, 500, 502, 503])
    rates[status] = await rateAfter(status);
  expect(rates).toEqual({
    400: 0,
    401: 0,
    403: 0,
    404: 1,
    410: 1,
    422: 0,
    429: 0,
    500: 1,
    502: 1,
    503: 1,
  });
});

test("an unreachable provider is quarantined, listed in events, restored later and forgotten after an hour", async () => {
  const upstream = await upstreamThatEnds();
  const { gateway, clock } = await open({
    providers: [from("well", upstream.baseUrl), from("gone", refusingBaseUrl())],
  });
  await ask(gateway, "acme/well", 30);
  await ask(gateway, "acme/gone", 9);
  clock.advance(10_000);
  await ask(gateway, "acme/gone", 1);
  expect(gateway.app.insights.stateOf("gone")).toBe("quarantined");
  const body = await snapshotOf(gateway);
  expect(at(body, "components.routing.data.degraded")).toEqual([
    { id: "gone", name: "GONE", logo: "/logos/gone.svg", state: "quarantined" },
  ]);
  expect(
    listAt(body, "components.providers.data.providers").map(
      (row) => `${textAt(row, "name")} ${textAt(row, "status")}`,
    ),
  ).toEqual(["gone down", "well healthy"]);
  expect(
    listAt(body, "events").map(
      (event) => `${textAt(event, "upstream_id")} ${textAt(event, "from")} ${textAt(event, "to")}`,
    ),
  ).toEqual(["gone degraded down", "gone unknown degraded", "well unknown healthy"]);
  expect([textAt(body, "status"), textAt(body, "components.api.status")]).toEqual([
    "degraded",
    "degraded",
  ]);
  clock.advance(120_000);
  await gateway.app.insights.health.check();
  expect(gateway.app.insights.stateOf("gone")).toBeUndefined();
  clock.advance(3_600_000);
  const later = await snapshotOf(gateway);
  expect(at(later, "components.api.data.requests_1h")).toBe(0);
  expect(textAt(later, "components.api.status")).toBe("no_signal");
});

describe.each(allEngines)("GET /health on %s", (engine, freshUrl) => {
  test("answers without the database, and the state of Postgres does not affect the overall status", async () => {
    const url = await freshUrl();
    const { gateway } = await open(url === undefined ? {} : { url });
    await gateway.app.insights.health.check();
    const up = at(await snapshotOf(gateway), "components.postgres.status");
    expect(up as string).toBe(engine === "Postgres" ? "healthy" : "no_signal");
    await gateway.app.storage.close();
    await gateway.app.insights.health.check();
    const body = await snapshotOf(gateway);
    expect(at(body, "components.postgres.status") as string).toBe(
      engine === "Postgres" ? "down" : "no_signal",
    );
    expect(textAt(body, "status")).toBe("no_signal");
  });
});

test("reports a spent provider budget until the next day", async () => {
  const upstream = await upstreamThatEnds();
  const { gateway, clock } = await open({
    providers: [from("paid", upstream.baseUrl, { budget_usd_per_day: 0.000_02 })],
  });
  await ask(gateway, "acme/paid", 1);
  expect(gateway.app.insights.stateOf("paid")).toBeUndefined();
  await ask(gateway, "acme/paid", 1);
  expect(gateway.app.insights.stateOf("paid")).toBe("budget_exhausted");
  const body = await snapshotOf(gateway);
  expect([textAt(body, "status"), textAt(body, "components.routing.status")]).toEqual([
    "down",
    "down",
  ]);
  clock.advance(12 * 3_600_000);
  await gateway.app.insights.health.check();
  expect(gateway.app.insights.stateOf("paid")).toBeUndefined();
});

test("smoke tests run at their scheduled hour, and a failed one excludes the provider", async () => {
  const clock = new FakeClock(Date.UTC(2026, 10, 21, 4, 16));
  const asked: string[] = [];
  const gateway = await startGateway(
    { providers: [from("well", "http://127.0.0.1:9"), from("sick", "http://127.0.0.1:9")] },
    {
      clock,
      smoke: {
        providerIds: () => ["sick", "well"],
        async ask(id) {
          asked.push(id);
          return id === "well"
            ? { outcome: "passed", latencyMs: 5 }
            : { outcome: "failed", message: "it answered 500" };
        },
      },
    },
  );
  ends.push(() => gateway.stop());
  const { health } = gateway.app.insights;
  await health.check();
  await health.idle();
  expect(asked).toEqual([]);
  clock.advance(60_000);
  await health.check();
  await health.idle();
  expect(asked).toEqual(["sick", "sick", "well"]);
  const body = await snapshotOf(gateway);
  expect(at(body, "components.smoke_tests")).toMatchObject({
    status: "partial",
    data: {
      total: 2,
      passed: 1,
      failed: 1,
      skipped: 0,
      last_run: "2026-11-21T04:17:00.000Z",
      stale: false,
      cadence: "17 4 * * *",
    },
  });
  expect(gateway.app.insights.stateOf("sick")).toBe("excluded");
  expect(JSON.stringify(body)).not.toContain("500");
  expect(JSON.stringify(at(body, "components.workflows"))).toContain("smoke_tests");
});

test("smoke tests use each provider's cheapest model, charge nobody and ignore refused requests", async () => {
  const clock = new FakeClock(Date.UTC(2026, 10, 21, 4, 16));
  const upstream = await upstreamThatEnds();
  const models = [
    { id: "acme/dear", pricing: { prompt: "9", completion: "9" } },
    { id: "acme/cheap", pricing },
  ];
  const gateway = await startGateway(
    {
      providers: [
        from("gone", refusingBaseUrl()),
        from("locked", upstream.baseUrl),
        from("picky", upstream.baseUrl),
        from("well", upstream.baseUrl, { models }),
        from("keyless", upstream.baseUrl, { api_key: undefined }),
      ],
    },
    { clock, smoke: undefined },
  );
  ends.push(() => gateway.stop());
  const refused = (status: number) => json(chatError("no"), { status });
  upstream.enqueue(refused(401), refused(401), refused(400));
  const { health } = gateway.app.insights;
  await health.check();
  await health.idle();
  clock.advance(60_000);
  await health.check();
  await health.idle();
  const body = await snapshotOf(gateway);
  expect(at(body, "components.smoke_tests.data")).toMatchObject({
    total: 4,
    passed: 1,
    failed: 2,
    skipped: 1,
  });
  expect(["gone", "locked", "picky", "well"].map((id) => gateway.app.insights.stateOf(id))).toEqual(
    ["excluded", "excluded", undefined, undefined],
  );
  expect(upstream.requests.map((request) => at(request.json(), "model"))).toEqual([
    "locked",
    "locked",
    "picky",
    "cheap",
  ]);
  expect(
    await gateway.app.storage.database.selectFrom("generations").selectAll().execute(),
  ).toEqual([]);
  expect(at(body, "components.api.data.requests_1h")).toBe(0);
});

test("GET /health returns 429 after 300 requests from one address within a minute", async () => {
  const { gateway } = await open({});
  const statuses = new Map<number, number>();
  let refusal: Response | undefined;
  for (let count = 0; count < 301; count += 1) {
    const response = await fetch(`${gateway.baseUrl}/health`);
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    if (response.status === 429) refusal = response;
    else await response.arrayBuffer();
  }
  expect([...statuses]).toEqual([
    [200, 300],
    [429, 1],
  ]);
  expect(refusal?.headers.get("retry-after")).toBe("60");
  expect(refusal?.headers.get("cache-control")).toBeNull();
  expect(refusal === undefined ? undefined : await errorOf(refusal)).toMatchObject({
    code: "ip_rate_limit_exceeded",
  });
});

test.each(allEngines)(
  "the last hour is known again after a restart, on %s",
  async (_, freshUrl) => {
    const folder = mkdtempSync(join(tmpdir(), "switchyard-health-"));
    ends.push(() => rmSync(folder, { recursive: true, force: true }));
    const url = (await freshUrl()) ?? `sqlite:${join(folder, "gateway.db")}`;
    const clock = new FakeClock();
    const upstream = await upstreamThatEnds();
    const providers = [from("well", upstream.baseUrl), from("gone", refusingBaseUrl())];
    const { gateway } = await open({ providers, url, clock });
    await ask(gateway, "acme/well", 6);
    await ask(gateway, "acme/gone", 6);
    const before = await snapshotOf(gateway);
    await gateway.stop();
    ends.pop();
    clock.advance(60_000);
    const restarted = await open({ providers, url, clock });
    const { health } = restarted.gateway.app.insights;
    // The records are read beside the start, which waits for no history.
    while ((health.snapshot().components.providers.data?.providers.length ?? 0) < 2)
      await Bun.sleep(1);
    const after = await snapshotOf(restarted.gateway);
    expect(at(after, "components.providers")).toEqual(at(before, "components.providers"));
    expect(at(after, "components.api.data")).toEqual(at(before, "components.api.data"));
  },
  240_000,
);

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Candidate } from "../../../src/inference/routing/candidate.ts";
import {
  StickySessions,
  type SessionPlace,
  type SharedPlaces,
} from "../../../src/inference/routing/sticky-sessions.ts";
import { SharedState } from "../../../src/platform/shared-state/shared-state.ts";
import { SharedStateAwayError } from "../../../src/platform/shared-state/shared-state-error.ts";
import { SharedValues } from "../../../src/platform/shared-state/shared-values.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { migratedDatabase } from "../../support/postgres.ts";
import { freshRedis, hasRedis, redisMissing, startRedis } from "../../support/redis.ts";
import { silentLogger } from "../../support/silent-logger.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { chatRequest } from "../api/chat-request.ts";
import { until } from "./support/until.ts";

const session = { workspaceId: "ws_1", id: "chat" };
const at = (id: string, modelIndex = 0): Candidate =>
  ({
    model: { id: "acme/large" },
    route: { provider: { id } },
    modelIndex,
  }) as unknown as Candidate;

/** Places in the memory of this process, as two gateways would share them. */
function inMemory(): SharedPlaces {
  const places = new Map<string, SessionPlace>();
  return {
    get: async (key) => places.get(key),
    set: async (key, place) => void places.set(key, place),
  };
}

const states: SharedState[] = [];
afterAll(() => states.forEach((state) => state.close()));

const onValkey = async (): Promise<SharedPlaces> => {
  const shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
  states.push(shared);
  return new SharedValues<SessionPlace>({ shared, name: "sessions", bytesMax: 100_000 });
};

type Store = [name: string, open: () => Promise<SharedPlaces>];
const memory: Store = ["memory", async () => inMemory()];
const stores: Store[] = hasRedis ? [memory, ["Valkey", onValkey]] : [memory];

describe.each(stores)("routing sessions of two gateways (on %s)", (_, open) => {
  let [here, there] = [new StickySessions(new FakeClock()), new StickySessions(new FakeClock())];
  let shared: SharedPlaces;
  beforeAll(async () => {
    shared = await open();
    // However busy the machine is, it is waited for what the server has.
    [here, there] = [0, 1].map(
      () => new StickySessions(new FakeClock(), { shared, recallMs: 30_000 }),
    ) as [StickySessions, StickySessions];
  });
  const placeOf = async (
    sessions: StickySessions,
    asked = session,
    model = "acme/large",
  ): Promise<string | undefined> => {
    await sessions.recall(asked, model);
    return sessions.lastPlace(asked, model)?.provider;
  };
  const serve = (sessions: StickySessions, candidate: Candidate): boolean =>
    sessions.recordServed(session, { requestedModel: "acme/large", candidate });

  test("a session stays with its last provider at both, and only a change of provider is a move", async () => {
    expect([await placeOf(here), await placeOf(there)]).toEqual([undefined, undefined]);
    expect(serve(here, at("a"))).toBe(false);
    expect(await placeOf(there)).toBe("a");
    expect(serve(there, at("a"))).toBe(false);
    expect(serve(there, at("b"))).toBe(true);
    expect([await placeOf(here), await placeOf(there)]).toEqual(["b", "b"]);
    expect(serve(here, at("b"))).toBe(false);
  });

  test("sessions are separate by workspace, id and model, and fallback models are not stored", async () => {
    expect(await placeOf(there, { ...session, workspaceId: "ws_2" })).toBeUndefined();
    expect(await placeOf(there, { ...session, id: "other" })).toBeUndefined();
    expect(await placeOf(there, session, "acme/small")).toBeUndefined();
    serve(here, at("c", 1));
    expect(await placeOf(there)).toBe("b");
  });
});

test("a session that was learned moments ago is not asked for again", async () => {
  const places = inMemory();
  let asked = 0;
  const shared: SharedPlaces = {
    get: (key) => {
      asked += 1;
      return places.get(key);
    },
    set: (key, place, ttlSeconds) => places.set(key, place, ttlSeconds),
  };
  const clock = new FakeClock();
  const [here, there] = [0, 1].map(() => new StickySessions(clock, { shared, recallMs: 30_000 }));
  const serve = (sessions: StickySessions | undefined, id: string) =>
    sessions?.recordServed(session, { requestedModel: "acme/large", candidate: at(id) });
  serve(there, "a");
  for (let request = 0; request < 5; request += 1) {
    await here?.recall(session, "acme/large");
    serve(here, "a");
  }
  expect(asked).toBe(1);
  serve(there, "b");
  await here?.recall(session, "acme/large");
  expect(here?.lastPlace(session, "acme/large")?.provider).toBe("a");
  clock.advance(2_000);
  await here?.recall(session, "acme/large");
  expect([asked, here?.lastPlace(session, "acme/large")?.provider]).toEqual([2, "b"]);
});

test("a server that is late or away holds nobody up: each gateway goes by what it remembers", async () => {
  const late: SharedPlaces = {
    get: () => new Promise(() => undefined),
    set: () => new Promise(() => undefined),
  };
  const away: SharedPlaces = {
    get: () => Promise.reject(new SharedStateAwayError("away")),
    set: () => Promise.reject(new SharedStateAwayError("away")),
  };
  for (const shared of [late, away]) {
    const sessions = new StickySessions(new FakeClock(), { shared });
    await sessions.recall(session, "acme/large");
    expect(sessions.lastPlace(session, "acme/large")).toBeUndefined();
    sessions.recordServed(session, { requestedModel: "acme/large", candidate: at("a") });
    await sessions.recall(session, "acme/large");
    expect(sessions.lastPlace(session, "acme/large")?.provider).toBe("a");
  }
});

describe.skipIf(!hasRedis)(`two gateways on one Postgres${redisMissing}`, () => {
  let upstreams: FaultUpstream[];
  let gateways: [TestGateway, TestGateway];
  let redis: Awaited<ReturnType<typeof startRedis>>;
  beforeAll(async () => {
    upstreams = [await startFaultUpstream(), await startFaultUpstream()];
    for (const upstream of upstreams) upstream.script(healthyChat);
    redis = await startRedis();
    // Free, so that balances need no server; of providers that cost the same, the draw falls on the
    // last.
    const entry = (id: string, index: number, price: string) =>
      provider({
        id,
        base_url: upstreams[index]?.baseUrl ?? "",
        dialect: "openai-chat",
        api_key: "k",
        models: [
          {
            id: "acme/large:free",
            upstream_model: "large",
            pricing: { prompt: price, completion: price },
          },
        ],
      });
    const settings = {
      storageUrl: await migratedDatabase(),
      sharedUrl: redis.url,
      providers: [entry("first", 0, "0"), entry("second", 1, "0")],
    };
    gateways = [
      await startGateway(settings, { random: () => 0 }),
      await startGateway(settings, { random: () => 0 }),
    ];
  }, 240_000);
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    for (const upstream of upstreams) upstream.stop();
    await redis.kill();
  });

  const ask = async (
    gateway: TestGateway,
    body: Record<string, unknown>,
  ): Promise<string | null> => {
    const response = await gateway.post("/chat/completions", {
      ...chatRequest({ model: "acme/large:free" }),
      ...body,
    });
    await response.text();
    return response.headers.get("x-service-provider-chain");
  };

  test("a session is served by the same provider at both, and without Valkey too", async () => {
    const [here, there] = gateways;
    expect([await ask(here, {}), await ask(there, {})]).toEqual(["second", "second"]);
    let count = 0;
    // A request waits 25 ms for the server, and no longer however busy the machine is.
    const follows = async (): Promise<boolean> => {
      const session_id = `s ${count++}`;
      await ask(here, { session_id, provider: { only: ["first"] } });
      return (await ask(there, { session_id })) === "first";
    };
    await until(follows, { patienceMs: 50_000, what: "a session goes on at the other gateway" });
    const goesOn = async (): Promise<boolean> => {
      const content = [
        { type: "text", text: `Task ${count++}`, cache_control: { type: "ephemeral" } },
      ];
      const messages = [{ role: "user", content }];
      await ask(here, { messages, provider: { order: ["first", "second"] } });
      return (await ask(there, { messages })) === "first";
    };
    await until(goesOn, { patienceMs: 50_000, what: "a cached prefix goes on at the other one" });
    const session_id = "s kept";
    await ask(there, { session_id, provider: { only: ["first"] } });
    await redis.kill();
    expect(await ask(there, { session_id })).toBe("first");
    // The draw of a name is a hash, and so the same at both.
    expect(await ask(there, { session_id: "new" })).toBe(await ask(here, { session_id: "new" }));
  }, 240_000);
});

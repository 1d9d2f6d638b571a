import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import {
  AnswerCache,
  type AnswerTurns,
  cacheKeyOf,
  readCachePolicy,
  type CacheScope,
} from "./answer-cache.ts";
import { MemoryAnswerStore, type KeptAnswer } from "./memory-answer-store.ts";
import { readEmbeddingRequest } from "./embedding-request.ts";

const answerOf = (tail: string): KeptAnswer => ({
  tail,
  model: "m",
  provider: "p",
  upstreamModel: "u",
});
const storeOf = (bytesMax = 1_000_000) => {
  const clock = new FakeClock();
  return { clock, store: new MemoryAnswerStore({ clock, bytesMax }) };
};

describe("the cache store", () => {
  test("drops an entry after its TTL", async () => {
    const { clock, store } = storeOf();
    await store.set("k", answerOf("x"), 10);
    clock.advance(9_999);
    expect((await store.get("k"))?.tail).toBe("x");
    clock.advance(1);
    expect(await store.get("k")).toBeUndefined();
    expect(store.heldBytes).toBe(0);
  });

  test("stays within its size limit and drops the least recently used entry", async () => {
    const { store } = storeOf(40_000);
    for (const name of ["a", "b", "c", "d"]) await store.set(name, answerOf("x".repeat(9_000)), 60);
    expect((await store.get("a"))?.tail).toHaveLength(9_000);
    await store.set("e", answerOf("x".repeat(9_000)), 60);
    const kept: string[] = [];
    for (const name of ["a", "b", "c", "d", "e"])
      if ((await store.get(name)) !== undefined) kept.push(name);
    expect(kept).toEqual(["a", "c", "d", "e"]);
    expect(store.heldBytes).toBeLessThanOrEqual(40_000);
  });

  test("does not store an oversized entry, and counts a replaced one once", async () => {
    const { store } = storeOf(40_000);
    await store.set("big", answerOf("x".repeat(20_000)), 60);
    expect(await store.get("big")).toBeUndefined();
    for (let time = 0; time < 100; time += 1) await store.set("k", answerOf("x".repeat(1_000)), 60);
    expect(store.heldBytes).toBeLessThan(2_000);
  });
});

describe("the response cache", () => {
  const cacheOf = (isShared = (): boolean => true) => new AnswerCache(storeOf().store, isShared);

  test("sends one request for concurrent identical requests", async () => {
    const cache = cacheOf();
    const gate = Promise.withResolvers<KeptAnswer>();
    let asked = 0;
    const make = (): Promise<KeptAnswer> => {
      asked += 1;
      return gate.promise;
    };
    const all = Array.from({ length: 1_000 }, () => cache.answer("k", { ttlSeconds: 60, make }));
    gate.resolve(answerOf("x"));
    expect(new Set((await Promise.all(all)).map(({ tail }) => tail))).toEqual(new Set(["x"]));
    await cache.answer("k", { ttlSeconds: 60, make });
    expect([asked, cache.underWayCount]).toEqual([1, 0]);
  });

  test("does not store a failure, and shares it with waiting callers if it concerns all", async () => {
    const cache = cacheOf();
    let asked = 0;
    const make = async (): Promise<KeptAnswer> => {
      asked += 1;
      throw new Error("down");
    };
    const both = await Promise.allSettled([
      cache.answer("k", { ttlSeconds: 60, make }),
      cache.answer("k", { ttlSeconds: 60, make }),
    ]);
    expect([both.map(({ status }) => status), asked]).toEqual([["rejected", "rejected"], 1]);
    expect(await cache.answer("k", { ttlSeconds: 60, make: async () => answerOf("up") })).toEqual(
      answerOf("up"),
    );
  });

  test("retries for the next caller after a failure that concerns only one caller", async () => {
    const cache = cacheOf(() => false);
    const failing = cache.answer("k", {
      ttlSeconds: 60,
      make: () => Promise.reject(new Error("no credits")),
    });
    const waiting = cache.answer("k", { ttlSeconds: 60, make: async () => answerOf("x") });
    await expect(failing).rejects.toThrow("no credits");
    expect((await waiting).tail).toBe("x");
  });

  /** Turns of two gateways in one process. */
  function turnsOf(holders: Map<string, string>, name: string): AnswerTurns {
    return {
      take: async (key) => {
        if (!holders.has(key)) holders.set(key, name);
        return holders.get(key) === name;
      },
      release: (key) => void (holders.get(key) === name && holders.delete(key)),
      ended: () => new Promise(setImmediate),
    };
  }

  test("lets one gateway send the request for all, and the next if it fails", async () => {
    const { store } = storeOf();
    const holders = new Map<string, string>();
    const [one, two, three] = ["one", "two", "three"].map(
      (name) => new AnswerCache(store, () => true, turnsOf(holders, name)),
    );
    const gate = Promise.withResolvers<KeptAnswer>();
    const asked: string[] = [];
    const ask = (cache: AnswerCache | undefined, name: string, answer: Promise<KeptAnswer>) =>
      cache?.answer("k", {
        ttlSeconds: 60,
        make: () => {
          asked.push(name);
          return answer;
        },
      });
    const first = ask(one, "one", gate.promise);
    while (asked.length === 0) await new Promise(setImmediate);
    const others = [
      ask(two, "two", Promise.resolve(answerOf("x"))),
      ask(three, "three", Promise.resolve(answerOf("x"))),
    ];
    gate.reject(new Error("down"));
    await expect(first).rejects.toThrow("down");
    expect((await Promise.all(others)).map((answer) => answer?.tail)).toEqual(["x", "x"]);
    expect([asked.length, asked[0], holders.size]).toEqual([2, "one", 0]);
  });

  test("lets each gateway send its own request if turns are unavailable", async () => {
    const turns: AnswerTurns = {
      take: () => Promise.reject(new Error("away")),
      release: () => undefined,
      ended: () => Promise.resolve(),
    };
    const cache = new AnswerCache(storeOf().store, () => true, turns);
    const make = async () => answerOf("x");
    expect((await cache.answer("k", { ttlSeconds: 60, make })).tail).toBe("x");
  });

  test("works without a store that fails", async () => {
    const gone = () => Promise.reject(new Error("gone"));
    const broken = new AnswerCache({ get: gone, set: gone }, () => true);
    expect(
      (await broken.answer("k", { ttlSeconds: 60, make: async () => answerOf("x") })).tail,
    ).toBe("x");
  });
});

describe("cache keys", () => {
  const scope: CacheScope = {
    workspaceId: "ws_1",
    modelId: "m/e",
    providers: [null, null],
    ownKey: undefined,
  };
  const keyOf = (
    changes: Record<string, unknown> = {},
    scopeChanges: Partial<CacheScope> = {},
  ): string =>
    cacheKeyOf(readEmbeddingRequest({ model: "m/e", input: "text", ...changes }), {
      ...scope,
      ...scopeChanges,
    });

  test("are equal for equal requests of any user and session", () => {
    expect(keyOf({ user: "u", session_id: "s", trace: {} })).toBe(keyOf());
    expect(keyOf({ b: 1, a: 2 })).toBe(keyOf({ a: 2, b: 1 }));
    expect(keyOf({ input: ["text"] })).toBe(keyOf());
  });

  test.each<[string, string]>([
    ["workspace", keyOf({}, { workspaceId: "ws_2" })],
    ["model", keyOf({}, { modelId: "m/f" })],
    ["input", keyOf({ input: "other" })],
    ["dimensions", keyOf({ dimensions: 3 })],
    ["format", keyOf({ encoding_format: "base64" })],
    ["vendor field", keyOf({ input_type: "query" })],
    ["provider", keyOf({}, { providers: [{ only: ["acme"] }, null] })],
    ["gw-cache-key", keyOf({}, { ownKey: "mine" })],
  ])("differ for another %s", (_, key) => expect(key).not.toBe(keyOf()));

  test("use gw-cache-key in place of the input, but not of model, format or workspace", () => {
    const own = { ownKey: "mine" };
    expect(keyOf({ input: "other" }, own)).toBe(keyOf({}, own));
    const others = [
      keyOf({ dimensions: 3 }, own),
      keyOf({}, { ...own, modelId: "m/f" }),
      keyOf({}, { ...own, workspaceId: "ws_2" }),
    ];
    for (const other of others) expect(other).not.toBe(keyOf({}, own));
  });
});

describe("readCachePolicy", () => {
  test.each<[Record<string, string>, ReturnType<typeof readCachePolicy>]>([
    [{}, { ttlSeconds: 3_600, ownKey: undefined }],
    [
      { "gw-cache-ttl": "5", "gw-cache-key": "mine" },
      { ttlSeconds: 5, ownKey: "mine" },
    ],
    [{ "gw-cache-ttl": "99999999999" }, { ttlSeconds: 2_592_000, ownKey: undefined }],
    [{ "gw-cache-ttl": "0" }, undefined],
    [{ "gw-skip-cache": "true" }, undefined],
    [{ "gw-skip-cache": "false" }, { ttlSeconds: 3_600, ownKey: undefined }],
  ])("%p", (headers, policy) => expect(readCachePolicy(new Headers(headers))).toEqual(policy));

  test.each([
    ["gw-cache-ttl", "soon"],
    ["gw-cache-ttl", "-1"],
    ["gw-cache-ttl", "1.5"],
    ["gw-cache-key", "k".repeat(1_025)],
  ])("refuses %s %s", (name, value) => {
    expect(() => readCachePolicy(new Headers({ [name]: value }))).toThrow(
      expect.objectContaining({ code: "invalid_request_error", param: name }),
    );
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { at } from "./at.ts";

type Body = Record<string, unknown>;

const model = "acme/large";
/** A model whose providers charge less for cached input, as those do that cache unasked. */
const caching = "acme/caching";

/** The draw falls on the first, which costs less, unless something ties to the second. */
const entry = (id: string, baseUrl: string, price: string) =>
  provider({
    id,
    base_url: baseUrl,
    dialect: "openai-chat",
    api_key: "k",
    models: [
      { id: model, pricing: { prompt: price, completion: price } },
      { id: caching, pricing: { prompt: price, completion: price, cache_read: "0.0001" } },
    ],
  });

let upstreams: [FaultUpstream, FaultUpstream];
let gateway: TestGateway;
beforeAll(async () => {
  upstreams = [await startFaultUpstream(), await startFaultUpstream()];
  gateway = await startGateway(
    {
      providers: [
        entry("first", upstreams[0].baseUrl, "0.001"),
        entry("second", upstreams[1].baseUrl, "10"),
      ],
      plans: { enterprise: { perMinute: 1_000_000 } },
    },
    { random: () => 0 },
  );
});
afterAll(async () => {
  await gateway.stop();
  for (const upstream of upstreams) upstream.stop();
});
beforeEach(() => upstreams.forEach((upstream) => upstream.script(healthyChat)));

interface Asking {
  path: string;
  body: Body;
  headers?: Record<string, string>;
}

async function ask({ path, body, headers = {} }: Asking, fields: Body = {}) {
  const response = await gateway.post(path, { model, ...body, ...fields }, { headers });
  await response.text();
  return {
    chain: response.headers.get("x-service-provider-chain"),
    moved: response.headers.get("x-service-session-moved"),
    id: `gen_${response.headers.get("x-service-trace-id")}`,
  };
}

const chainOf = async (asking: Asking, fields: Body = {}): Promise<string | null> =>
  (await ask(asking, fields)).chain;

const onSecond = { provider: { only: ["second"] } };

const said = (text: string) => [{ role: "user", content: text }];
const chat = (body: Body = {}): Asking => ({
  path: "/chat/completions",
  body: { messages: said("Hello"), ...body },
});
const messages = (body: Body = {}): Asking => ({
  path: "/messages",
  body: { max_tokens: 50, messages: said("Hello"), ...body },
});
const responses = (body: Body = {}): Asking => ({
  path: "/responses",
  body: { input: "Hello", store: false, ...body },
});

const uuid = "7d2f5a3c-0c55-4a8f-9d43-6a0b7c7d6c01";
const names: readonly (readonly [by: string, asking: Asking])[] = [
  ["prompt_cache_key", chat({ prompt_cache_key: "c1" })],
  ["prompt_cache_key", responses({ prompt_cache_key: "c2" })],
  ["prompt_cache_key", responses({ prompt_cache_key: "c".repeat(300) })],
  [
    "x-claude-code-session-id",
    { ...messages(), headers: { "x-claude-code-session-id": `${uuid}a` } },
  ],
  ["session-id", { ...responses(), headers: { "session-id": `${uuid}b` } }],
  [
    "metadata.user_id",
    messages({
      metadata: { user_id: JSON.stringify({ device_id: "d", account_uuid: "", session_id: uuid }) },
    }),
  ],
  [
    "metadata.user_id",
    messages({ metadata: { user_id: `user_${"a".repeat(64)}_account__session_${uuid}x` } }),
  ],
];

describe("a conversation stays with its provider where it is named", () => {
  test.each(names)("by %s (%#)", async (by, asking) => {
    expect(await chainOf(asking)).toBe("first");
    expect(await ask(asking, onSecond)).toMatchObject({ chain: "second", moved: "true" });
    const { chain, id } = await ask(asking);
    expect(chain).toBe("second");
    const record = await (await gateway.get(`/generation/${id}`)).json();
    expect(JSON.stringify(at(record, "data.routing"))).toContain(
      `served the conversation last (${by})`,
    );
  });

  test("and an id of a person names none", async () => {
    const asking = messages({ metadata: { user_id: "person_7" } });
    expect([await chainOf(asking, onSecond), await chainOf(asking)]).toEqual(["second", "first"]);
  });

  test("and its own session_id takes precedence", async () => {
    const asking = chat({ prompt_cache_key: "c9", session_id: "s9" });
    await chainOf(asking, onSecond);
    expect(await chainOf(chat({ session_id: "s9" }))).toBe("second");
    expect(await chainOf(chat({ prompt_cache_key: "c9" }))).toBe("first");
  });
});

const mark = { cache_control: { type: "ephemeral" } };
const long = "You are careful. ".repeat(400);

describe("without a name, a conversation stays where the prefix of its prompt is cached", () => {
  test("as the request marks it, although the marker moves and tools come back", async () => {
    const system = [
      { type: "text", text: "x-anthropic-billing-header: cch=1" },
      { type: "text", text: "You are a gardener.", ...mark },
    ];
    const first = messages({
      system,
      messages: [{ role: "user", content: [{ type: "text", text: "Go", ...mark }] }],
    });
    expect(await ask(first, onSecond)).toMatchObject({ chain: "second", moved: null });
    const next = messages({
      system: [{ type: "text", text: "x-anthropic-billing-header: cch=2" }, system[1]],
      messages: [
        { role: "user", content: "Go" },
        { role: "assistant", content: "Gone." },
        { role: "user", content: [{ type: "text", text: "On", ...mark }] },
      ],
    });
    // The provider was the only candidate of the first request, so nothing was hashed for it.
    expect(await chainOf(next)).toBe("first");
    expect(await chainOf(next, { provider: { order: ["second", "first"] } })).toBe("second");
    expect(await chainOf(first)).toBe("second");
    expect(await chainOf(next)).toBe("second");
  });

  const tied = { provider: { order: ["second", "first"] } };

  test("by the instructions alone where only they are marked", async () => {
    const system = [{ type: "text", text: "You are a mason.", ...mark }];
    await chainOf(messages({ system, messages: said("One") }), tied);
    expect(await chainOf(messages({ system, messages: said("Two") }))).toBe("second");
    expect(await chainOf(messages({ system: "You are a mason.", messages: said("Two") }))).toBe(
      "first",
    );
  });

  test("as its providers are known to cache it, from the size on that they cache", async () => {
    const asking = (content: string) =>
      chat({ model: caching, messages: [{ role: "system", content }, ...said("Hello")] });
    await chainOf(asking(long), tied);
    expect(await chainOf(asking(long))).toBe("second");
    const unmarked = chat({ messages: [{ role: "system", content: long }, ...said("Hello")] });
    await chainOf(unmarked, tied);
    expect(await chainOf(unmarked)).toBe("first");
    await chainOf(asking("Short."), tied);
    expect(await chainOf(asking("Short."))).toBe("first");
  });

  test("unless the request sorts its routes", async () => {
    const system = [{ type: "text", text: "You are a miller.", ...mark }];
    await chainOf(messages({ system }), tied);
    expect(await chainOf(messages({ system }), { provider: { sort: "price" } })).toBe("first");
  });
});

describe("reasoning that only its provider can read", () => {
  const sealed = (by: string) => ({
    type: "reasoning",
    id: "rs_1",
    summary: [],
    encrypted_content: `gw1:${by}:c2Vh`,
  });
  const asking = (...items: unknown[]) =>
    responses({ input: [...said("Go"), ...items, ...said("On")] });

  test("goes back to it, the latest first", async () => {
    expect(await chainOf(asking(sealed("second")))).toBe("second");
    expect(await chainOf(asking(sealed("first"), sealed("second")))).toBe("second");
    expect(await chainOf(asking(sealed("second"), sealed("first")))).toBe("first");
    const explained = await gateway.post("/routing/explain", {
      model,
      messages: [
        ...said("Go"),
        {
          role: "assistant",
          content: "Gone.",
          reasoning_details: [{ type: "reasoning.encrypted", data: "gw1:second:c2Vh" }],
        },
        ...said("On"),
      ],
    });
    expect(at(await explained.json(), "candidates.0")).toMatchObject({
      provider: "second",
      reason: expect.stringContaining("sealed the latest reasoning"),
    });
  });

  test("is not what a text says", async () => {
    expect(await chainOf(chat({ messages: said('It says "gw1:second:c2Vh".') }))).toBe("first");
    expect(await chainOf(asking(sealed("nobody")))).toBe("first");
  });
});

describe("affinity yields", () => {
  const asking = chat({ prompt_cache_key: "yielding" });
  beforeEach(async () => {
    await chainOf(asking, onSecond);
  });

  test("to an explicit order", async () => {
    expect(await chainOf(asking, { provider: { order: ["first"] } })).toBe("first");
  });

  test("to price filters", async () => {
    expect(await chainOf(asking, { provider: { max_price: { prompt: 1 } } })).toBe("first");
  });

  test("to health", async () => {
    upstreams[1].script(json(chatError("no"), { status: 500 }));
    expect(await chainOf(asking)).toBe("second->first");
    upstreams[1].script(healthyChat);
    expect(await chainOf(asking)).toBe("first");
  });
});

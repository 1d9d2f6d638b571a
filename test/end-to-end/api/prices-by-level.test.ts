import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  type TestGateway,
  testManagementKey,
} from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { body, json, stream } from "../../support/upstream/steps.ts";

const prompt = [{ role: "user", content: "Hi" }];
const pricing = { prompt: "1", completion: "2" };
const priced = {
  ...pricing,
  search: "0.01",
  tools: { code_interpreter: "0.03" },
  service_tier: { priority: { prompt: "10", completion: "20" }, flex: "0.5" },
  speed: { fast: { prompt: "6", completion: "12" } },
  inference_geo: { us: "1.1" },
};

const sseHead = { headers: { "content-type": "text/event-stream" } };

let upstream: FaultUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startFaultUpstream();
  const entry = (id: string, dialect: string, more = {}) =>
    provider({
      id,
      base_url: upstream.baseUrl,
      dialect,
      api_key: "upstream-secret",
      models: [
        { id: `${id}/known`, pricing: priced, max_completion_tokens: 1_000 },
        { id: `${id}/bare`, pricing, max_completion_tokens: 1_000 },
      ],
      ...more,
    });
  gateway = await startGateway({
    providers: [
      entry("chat", "openai-chat"),
      entry("claude", "anthropic-messages"),
      entry("responses", "openai-responses"),
      entry("google", "google-generate"),
      entry("plain", "openai-chat", { deviations: ["refuses_service_tier"] }),
      entry("slow", "anthropic-messages", {
        deviations: ["refuses_speed", "refuses_inference_geo"],
      }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

type Fields = Record<string, unknown>;

const message = (usage: Fields): Fields => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "m",
  content: [{ type: "text", text: "Hello." }],
  stop_reason: "end_turn",
  usage: { input_tokens: 1_000, output_tokens: 1_000, ...usage },
});

const completion = (fields: Fields): Fields => ({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1_000, completion_tokens: 1_000, total_tokens: 2_000 },
  ...fields,
});

const response = (fields: Fields): Fields => ({
  id: "resp_1",
  object: "response",
  created_at: 1,
  status: "completed",
  model: "m",
  output: [
    {
      id: "msg_1",
      type: "message",
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", text: "Hello.", annotations: [] }],
    },
    ...((fields["items"] as Fields[] | undefined) ?? []),
  ],
  usage: { input_tokens: 1_000, output_tokens: 1_000, total_tokens: 2_000 },
  service_tier: fields["service_tier"] ?? "default",
});

const gemini = (queries: string[]): Fields => ({
  candidates: [
    {
      content: { role: "model", parts: [{ text: "Hello." }] },
      finishReason: "STOP",
      groundingMetadata: { webSearchQueries: queries },
    },
  ],
  usageMetadata: { promptTokenCount: 1_000, candidatesTokenCount: 1_000, totalTokenCount: 2_000 },
});

interface Asked {
  path: "/chat/completions" | "/messages" | "/responses";
  model: string;
  fields: Fields;
  answer: Fields;
}

async function send({ path, model, fields, answer }: Asked): Promise<Response> {
  upstream.script(json(answer));
  const input = path === "/responses" ? { input: "Hi" } : { messages: prompt };
  return gateway.post(path, { model, max_tokens: 1_000, ...input, ...fields });
}

async function charged(asked: Asked): Promise<number> {
  const answer = await send(asked);
  const body = (await answer.json()) as { usage: { cost: number } };
  expect([answer.status, body]).toMatchObject([200, {}]);
  return body.usage.cost;
}

/** The record of the latest request: what was held, and the price that was charged. */
async function lastRecord(): Promise<{ held: number; price: string; cost: number }> {
  const list = (await (
    await fetch(`${gateway.baseUrl}/analytics/generations?limit=1`, {
      headers: { authorization: `Bearer ${testManagementKey}` },
    })
  ).json()) as { data: { id: string }[] };
  const { data } = (await (await gateway.get(`/generation/${list.data[0]?.id}`)).json()) as {
    data: { hold: { reserved_usd: number }; price: { version: string }; total_cost: number };
  };
  return { held: data.hold.reserved_usd, price: data.price.version, cost: data.total_cost };
}

const search = { tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 3 }] };

describe("a request is charged at the level that the answer names", () => {
  const base = 0.003;
  const rows: readonly (readonly [string, Asked, number])[] = [
    [
      "chat, priority",
      {
        path: "/chat/completions",
        model: "chat/known",
        fields: { service_tier: "priority" },
        answer: completion({ service_tier: "priority" }),
      },
      base * 10,
    ],
    [
      "chat, fast is priority",
      {
        path: "/chat/completions",
        model: "chat/known",
        fields: { service_tier: "fast" },
        answer: completion({ service_tier: "priority" }),
      },
      base * 10,
    ],
    [
      "chat, priority served at the ordinary tier",
      {
        path: "/chat/completions",
        model: "chat/known",
        fields: { service_tier: "priority" },
        answer: completion({ service_tier: "default" }),
      },
      base,
    ],
    [
      "chat, priority and no word of it",
      {
        path: "/chat/completions",
        model: "chat/known",
        fields: { service_tier: "priority" },
        answer: completion({}),
      },
      base * 10,
    ],
    [
      "chat, priority that the project chose",
      {
        path: "/chat/completions",
        model: "chat/known",
        fields: {},
        answer: completion({ service_tier: "priority" }),
      },
      base * 10,
    ],
    [
      "chat, flex",
      {
        path: "/chat/completions",
        model: "chat/known",
        fields: { service_tier: "flex" },
        answer: completion({ service_tier: "flex" }),
      },
      base / 2,
    ],
    [
      "chat, flex and no word of it",
      {
        path: "/chat/completions",
        model: "chat/known",
        fields: { service_tier: "flex" },
        answer: completion({}),
      },
      base,
    ],
    [
      "Responses, priority",
      {
        path: "/responses",
        model: "responses/known",
        fields: { service_tier: "priority" },
        answer: response({ service_tier: "priority" }),
      },
      base * 10,
    ],
    [
      "chat to Responses, priority",
      {
        path: "/chat/completions",
        model: "responses/known",
        fields: { service_tier: "priority" },
        answer: response({ service_tier: "priority" }),
      },
      base * 10,
    ],
    [
      "Messages, fast",
      {
        path: "/messages",
        model: "claude/known",
        fields: { speed: "fast" },
        answer: message({ speed: "fast" }),
      },
      base * 6,
    ],
    [
      "Messages, fast that fell back",
      {
        path: "/messages",
        model: "claude/known",
        fields: { speed: "fast" },
        answer: message({ speed: "standard" }),
      },
      base,
    ],
    [
      "Messages, in a region",
      {
        path: "/messages",
        model: "claude/known",
        fields: { inference_geo: "us" },
        answer: message({ inference_geo: "us" }),
      },
      base * 1.1,
    ],
    [
      "Messages, fast in a region",
      {
        path: "/messages",
        model: "claude/known",
        fields: { speed: "fast", inference_geo: "us" },
        answer: message({ speed: "fast", inference_geo: "us" }),
      },
      base * 6.6,
    ],
    [
      "Messages, two searches",
      {
        path: "/messages",
        model: "claude/known",
        fields: search,
        answer: message({ server_tool_use: { web_search_requests: 2 } }),
      },
      base + 0.02,
    ],
    [
      "Messages, no search",
      { path: "/messages", model: "claude/known", fields: search, answer: message({}) },
      base,
    ],
    [
      "Messages, tokens of a compaction",
      {
        path: "/messages",
        model: "claude/bare",
        fields: {},
        answer: message({
          iterations: [
            { type: "message", input_tokens: 1_000, output_tokens: 1_000 },
            { type: "compaction", input_tokens: 1_000, output_tokens: 500 },
          ],
        }),
      },
      base + 0.002,
    ],
    [
      "Responses, a search and code",
      {
        path: "/responses",
        model: "responses/known",
        fields: {
          tools: [
            { type: "web_search" },
            { type: "code_interpreter", container: { type: "auto" } },
          ],
        },
        answer: response({
          items: [
            {
              id: "ws_1",
              type: "web_search_call",
              status: "completed",
              action: { type: "search", query: "q" },
            },
            {
              id: "ws_2",
              type: "web_search_call",
              status: "completed",
              action: { type: "open_page" },
            },
            {
              id: "ci_1",
              type: "code_interpreter_call",
              container_id: "cntr_1",
              status: "completed",
              code: "1",
              outputs: [],
            },
            {
              id: "ci_2",
              type: "code_interpreter_call",
              container_id: "cntr_1",
              status: "completed",
              code: "1",
              outputs: [],
            },
          ],
        }),
      },
      base + 0.01 + 0.03,
    ],
    [
      "chat, a search that is not counted",
      {
        path: "/chat/completions",
        model: "chat/known",
        fields: { web_search_options: {} },
        answer: completion({}),
      },
      base + 0.01,
    ],
    [
      "Messages to Google, by a tool, one search",
      { path: "/messages", model: "google/known", fields: search, answer: gemini(["a"]) },
      base + 0.01,
    ],
    [
      "Messages to Responses, by a tool, two searches",
      {
        path: "/messages",
        model: "responses/known",
        fields: search,
        answer: response({ items: [{ type: "web_search_call" }, { type: "web_search_call" }] }),
      },
      base + 0.02,
    ],
    [
      "Messages to Responses, a search without a price, which is left out",
      { path: "/messages", model: "responses/bare", fields: search, answer: response({}) },
      base,
    ],
    [
      "Responses to Messages, by a tool, one search",
      {
        path: "/responses",
        model: "claude/known",
        fields: { tools: [{ type: "web_search" }] },
        answer: message({ server_tool_use: { web_search_requests: 1 } }),
      },
      base + 0.01,
    ],
    [
      "chat to Google, two searches",
      {
        path: "/chat/completions",
        model: "google/known",
        fields: { web_search_options: {} },
        answer: gemini(["a", "b"]),
      },
      base + 0.02,
    ],
  ];
  test.each(rows)("%s", async (_, asked, cost) => {
    expect(await charged(asked)).toBeCloseTo(cost, 9);
  });

  test("a stream, at its end", async () => {
    const events = [
      { type: "message_start", message: message({ speed: "fast", output_tokens: 1 }) },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello." } },
      { type: "content_block_stop", index: 0 },
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn" },
        usage: { output_tokens: 1_000 },
      },
      { type: "message_stop" },
    ];
    upstream.script(
      stream(
        events.map((event) => body(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)),
        sseHead,
      ),
    );
    const answer = await gateway.post("/messages", {
      model: "claude/known",
      max_tokens: 1_000,
      messages: prompt,
      stream: true,
      speed: "fast",
    });
    expect(await answer.text()).toContain('"cost":0.018');
  });
});

test("the hold is the most expensive that the request allows, and the record names the price", async () => {
  await charged({
    path: "/messages",
    model: "claude/known",
    fields: { ...search, speed: "fast", inference_geo: "us" },
    answer: message({ speed: "standard" }),
  });
  const ordinary = await lastRecord();
  // 1,000 tokens of output at 12 USD a million times 1.1, and three searches.
  expect(ordinary.held).toBeGreaterThan(0.0132 + 0.03);
  expect(ordinary.held).toBeLessThan(0.0132 + 0.03 + 0.001);
  expect(ordinary.price).not.toContain("speed");
  await charged({
    path: "/messages",
    model: "claude/known",
    fields: { speed: "fast" },
    answer: message({ speed: "fast" }),
  });
  expect((await lastRecord()).price).toEndWith("+speed=fast");
});

describe("without a known price a request is refused, and no provider is asked", () => {
  const rows: readonly (readonly [string, string, Fields, string])[] = [
    ["/chat/completions", "chat/bare", { service_tier: "priority" }, "service_tier"],
    ["/chat/completions", "chat/bare", { service_tier: "flex" }, "service_tier"],
    ["/chat/completions", "chat/known", { service_tier: "ultrafast" }, "service_tier"],
    ["/chat/completions", "chat/bare", { web_search_options: {} }, "web_search_options"],
    ["/chat/completions", "chat/bare", { tools: [{ type: "browser_search" }] }, "tools[0]"],
    ["/responses", "responses/bare", { service_tier: "priority" }, "service_tier"],
    ["/responses", "responses/bare", { tools: [{ type: "web_search" }] }, "tools[0]"],
    [
      "/responses",
      "responses/known",
      { tools: [{ type: "code_interpreter", container: { type: "auto", memory_limit: "64g" } }] },
      "tools[0]",
    ],
    ["/responses", "responses/known", { tools: [{ type: "image_generation" }] }, "tools[0]"],
    ["/responses", "responses/known", { prompt: { id: "pmpt_1" } }, "prompt"],
    ["/messages", "claude/bare", { speed: "fast" }, "speed"],
    ["/messages", "claude/bare", { inference_geo: "us" }, "inference_geo"],
    ["/messages", "claude/bare", search, "tools[0]"],
    [
      "/messages",
      "claude/known",
      { tools: [{ type: "code_execution_20250825", name: "code_execution" }] },
      "tools[0]",
    ],
    ["/messages", "claude/known", { fallbacks: [{ model: "claude-opus-4-8" }] }, "fallbacks"],
  ];
  beforeEach(() => upstream.script(json(completion({}))));

  test.each(rows)("%s %s %j", async (path, model, fields, param) => {
    const before = upstream.requests.length;
    const input = path === "/responses" ? { input: "Hi" } : { messages: prompt };
    const answer = await gateway.post(path, { model, max_tokens: 100, ...input, ...fields });
    const { error } = (await answer.json()) as { error: { message: string; param?: string } };
    expect([answer.status, upstream.requests.length - before]).toEqual([400, 0]);
    expect(error.message).toStartWith(`${param}: the provider charges for this apart`);
    expect(error.message).toContain("pricing.");
  });

  test("another provider that has a price serves it", async () => {
    upstream.script(json(completion({ service_tier: "priority" })));
    const answer = await gateway.post("/chat/completions", {
      models: ["chat/bare", "chat/known"],
      model: "chat/bare",
      messages: prompt,
      service_tier: "priority",
    });
    expect(((await answer.json()) as Fields)["model"]).toBe("chat/known");
  });

  test("the ordinary values need no price", async () => {
    for (const tier of ["auto", "default"])
      expect(
        await charged({
          path: "/chat/completions",
          model: "chat/bare",
          fields: { service_tier: tier },
          answer: completion({}),
        }),
      ).toBeCloseTo(0.003, 9);
  });
});

describe("a field that a provider is said to refuse is left out and named", () => {
  test.each([
    ["/chat/completions", "plain/bare", { service_tier: "priority" }, completion({})],
    ["/messages", "slow/bare", { speed: "fast", inference_geo: "us" }, message({})],
  ] as const)("%s %s", async (path, model, fields, answer) => {
    const got = await send({ path, model, fields, answer });
    expect([got.status, ((await got.json()) as { usage: Fields }).usage["cost"]]).toEqual([
      200, 0.003,
    ]);
    const sent = JSON.parse(upstream.requests.at(-1)?.body ?? "") as Fields;
    for (const field of Object.keys(fields)) {
      expect(sent).not.toHaveProperty([field]);
      expect(got.headers.get("x-service-translation-loss")).toContain(field);
    }
  });
});

test("the caller's own provider key is sent everything", async () => {
  const added = await fetch(`${gateway.baseUrl}/auth/byok`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${testManagementKey}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ provider_id: "claude", api_key: "sk-own-key-number-one" }),
  });
  expect([added.status, await added.text()]).toEqual([200, expect.any(String)]);
  const got = await send({
    path: "/messages",
    model: "claude/bare",
    fields: { speed: "fast" },
    answer: message({ speed: "fast" }),
  });
  expect([got.status, JSON.parse(upstream.requests.at(-1)?.body ?? "")]).toMatchObject([
    200,
    { speed: "fast" },
  ]);
});

test("a preset that sets a paid field is treated alike", async () => {
  const created = await fetch(`${gateway.baseUrl}/presets`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${testManagementKey}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({
      slug: "quick",
      name: "Quick",
      config: { model: "chat/bare", tools: [{ type: "browser_search" }] },
    }),
  });
  expect(await created.text()).toContain("quick");
  const answer = await gateway.post("/chat/completions", {
    model: "@preset/quick",
    messages: prompt,
  });
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining("tools[0]")]);
});

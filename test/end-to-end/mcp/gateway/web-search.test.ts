import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { ConfiguredSearch } from "../../../../src/platform/config/search-settings.ts";
import { searchWeb } from "../../../../src/mcp/search/web-search.ts";
import { testLlmKey, testManagementKey } from "../../../support/gateway.ts";
import { at } from "../../api/at.ts";
import { startToolStage, type ToolStage } from "./tool-stage.ts";

const pages = [
  { url: "https://bun.sh/docs", title: "Bun", content: "Bun is a runtime." },
  { url: "https://node.example/about", title: "Node", content: "Node is one too." },
];

let stage: ToolStage;
let engine: ReturnType<typeof Bun.serve>;
const queries: string[] = [];
let openai: OpenAI;
let anthropic: Anthropic;
beforeAll(async () => {
  engine = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { searchParams } = new URL(request.url);
      queries.push(String(searchParams.get("q")));
      return Response.json({ results: pages });
    },
  });
  const search = {
    provider: "searxng",
    url: `http://127.0.0.1:${engine.port}`,
    apiKey: undefined,
    priceNanoUsd: 5_000_000n,
    results: 5,
    timeoutMs: 60_000,
  } satisfies ConfiguredSearch;
  stage = await startToolStage({ search });
  const { baseUrl, origin } = stage.gateway;
  openai = new OpenAI({ apiKey: testLlmKey, baseURL: baseUrl, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey: testLlmKey, baseURL: origin, maxRetries: 0 });
});
afterAll(async () => {
  await stage.stop();
  await engine.stop(true);
});
beforeEach(() => {
  stage.models.forget();
  queries.length = 0;
});

const model = "scripted/openai-chat";
const text = "See [Bun](https://bun.sh/docs).";
const say = () =>
  stage.models.say(
    { calls: [{ id: "s1", name: "web_search", arguments: { query: "what is bun" } }] },
    { text: ["See [Bun](https://bun", ".sh/docs)."] },
  );
const cost = 2 * 0.000025 + 0.005;

describe.each([false, true])("streamed: %p", (stream) => {
  test("Responses", async () => {
    say();
    const request = { model, input: "?", tools: [{ type: "web_search" as const }] };
    const events = stream
      ? await Array.fromAsync(await openai.responses.create({ ...request, stream: true }))
      : [];
    const response = stream
      ? events.flatMap((event) => (event.type === "response.completed" ? event.response : []))[0]
      : await openai.responses.create(request);
    expect(response?.output[0]).toMatchObject({
      type: "web_search_call",
      status: "completed",
      action: { type: "search", query: "what is bun" },
    });
    expect(at(response, "output.1.content.0.annotations")).toEqual([
      { type: "url_citation", url: pages[0]?.url, title: "Bun", start_index: 10, end_index: 29 },
    ] as never);
    expect(at(response, "usage.cost")).toBeCloseTo(cost, 9);
    expect(queries).toEqual(["what is bun"]);
    if (!stream) return;
    const names = events.map(({ type }) => type);
    for (const name of ["in_progress", "searching", "completed"])
      expect(names).toContain(`response.web_search_call.${name}` as never);
    expect(names).toContain("response.output_text.annotation.added");
  });

  test("chat, by plugin, option and the ending :online", async () => {
    const asked = [
      { model, plugins: [{ id: "web" }] },
      { model, web_search_options: {} },
      { model: `${model}:online` },
    ];
    for (const each of asked) {
      say();
      const request = { ...each, messages: [{ role: "user" as const, content: "?" }] };
      const message = stream
        ? (
            await Array.fromAsync(
              await openai.chat.completions.create({ ...request, stream: true }),
            )
          )
            .flatMap(({ choices }) => choices)
            .map(({ delta }) => at(delta, "annotations"))
            .find((annotations) => annotations !== undefined)
        : at(await openai.chat.completions.create(request), "choices.0.message.annotations");
      expect(message).toMatchObject([
        { type: "url_citation", url_citation: { url: pages[0]?.url, start_index: 10 } },
      ]);
    }
    expect(queries).toHaveLength(3);
  });

  // The second searches itself, and has no words for a search of Messages.
  test.each([model, "scripted/openai-responses"])("Messages, on %s", async (served) => {
    say();
    const request = {
      model: served,
      max_tokens: 500,
      messages: [{ role: "user" as const, content: "?" }],
      tools: [{ type: "web_search_20250305" as const, name: "web_search" as const, max_uses: 3 }],
    };
    const message = stream
      ? await anthropic.messages.stream(request).finalMessage()
      : await anthropic.messages.create(request);
    expect(message.content.map(({ type }) => type)).toEqual([
      "server_tool_use",
      "web_search_tool_result",
      "text",
    ]);
    expect(message.content[1]).toMatchObject({ content: [{ url: pages[0]?.url }, {}] });
    expect(message.content[2]).toMatchObject({
      text,
      citations: [{ type: "web_search_result_location", url: pages[0]?.url }],
    });
    if (!stream) expect(at(message, "usage.server_tool_use.web_search_requests")).toBe(1);
    stage.models.say({ text: ["Yes."] });
    await anthropic.messages.create({
      ...request,
      messages: [
        { role: "user", content: "?" },
        { role: "assistant", content: message.content as Anthropic.Messages.ContentBlockParam[] },
        { role: "user", content: "Sure?" },
      ],
    });
    expect(JSON.stringify(stage.models.requests.at(-1)?.json())).toContain("Bun is a runtime.");
  });
});

test("searches are recorded, bounded and narrowed to domains", async () => {
  stage.models.say(
    {
      calls: [
        { id: "a", name: "web_search", arguments: { query: "one" } },
        { id: "b", name: "web_search", arguments: { query: "two" } },
      ],
    },
    { text: ["No."] },
  );
  const message = await anthropic.messages.create({
    model,
    max_tokens: 500,
    messages: [{ role: "user", content: "?" }],
    tools: [
      {
        type: "web_search_20250305",
        name: "web_search",
        max_uses: 1,
        allowed_domains: ["node.example"],
      },
    ],
  });
  const results = message.content.filter(({ type }) => type === "web_search_tool_result");
  expect(results).toMatchObject([
    { content: [{ url: pages[1]?.url }] },
    { content: { type: "web_search_tool_result_error" } },
  ]);
  expect(queries).toHaveLength(1);
  const listed = await fetch(`${stage.gateway.baseUrl}/analytics/generations?limit=5`, {
    headers: { authorization: `Bearer ${testManagementKey}` },
  });
  const records = at(await listed.json(), "data") as { model: string; total_cost: number }[];
  expect(records.find((record) => record.model === "search/web_search")).toMatchObject({
    total_cost: 0.005,
  });
});

test.each([
  ["brave", { web: { results: [{ url: "https://a.example/", title: "A", description: "x" }] } }],
  ["tavily", { results: [{ url: "https://a.example/", title: "A", content: "x" }] }],
  ["exa", { results: [{ url: "https://a.example/", title: "A", text: "x" }] }],
] as const)("%s is asked in its own form", async (provider, answer) => {
  let asked = new Headers();
  const server = Bun.serve({
    port: 0,
    fetch(request) {
      asked = new Headers(request.headers);
      return Response.json(answer);
    },
  });
  const url = `http://127.0.0.1:${server.port}`;
  const settings = { provider, url, apiKey: "k", priceNanoUsd: 0n, results: 3, timeoutMs: 60_000 };
  const signal = new AbortController().signal;
  expect(await searchWeb(settings, { query: "q", signal })).toEqual([
    { url: "https://a.example/", title: "A", text: "x" },
  ]);
  const key = { brave: "x-subscription-token", tavily: "authorization", exa: "x-api-key" }[
    provider
  ];
  expect(asked.get(key)).toEndWith("k");
  await server.stop(true);
});

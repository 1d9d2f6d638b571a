import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../canonical/json.ts";
import type { DialectId } from "../canonical/dialect-id.ts";
import { responseParts } from "../canonical/response.ts";
import { AnswerLosses } from "./shared/encode-state.ts";
import { clientDialects, upstreamDialects } from "./index.ts";

const location = { type: "approximate", city: "Rome" };
const bare = { type: "web_search_20250305", name: "web_search" };
const claudes = {
  ...bare,
  max_uses: 3,
  allowed_domains: ["a.test"],
  blocked_domains: null,
  user_location: location,
};
const openais = {
  type: "web_search",
  search_context_size: "low",
  filters: { blocked_domains: ["b.test"] },
  user_location: location,
};

const clientOf = (id: DialectId) => {
  const client = clientDialects[id];
  if (client === undefined) throw new Error(`there are no clients of ${id}`);
  return client;
};

const asks: Partial<Record<DialectId, JsonObject>> = {
  "openai-chat": { model: "m", messages: [{ role: "user", content: "Hi" }] },
  "openai-responses": { model: "m", input: "Hi" },
  "anthropic-messages": {
    model: "m",
    max_tokens: 900,
    messages: [{ role: "user", content: "Hi" }],
  },
  "google-generate": { model: "m", contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
};

function sent(
  [client, upstream]: readonly [DialectId, DialectId],
  { searches = true, ...fields }: Record<string, unknown>,
): { body: JsonObject; lost: string[] } {
  const request = clientOf(client).decodeRequest({ ...asks[client], ...fields });
  const options = { upstreamModel: "m-1", stream: false, providerId: "p" };
  const { body, losses } = upstreamDialects[upstream].encodeRequest(request, {
    ...options,
    ...(searches === true && { searches }),
  });
  return { body, lost: losses.map(({ field }) => field) };
}

const chat = "openai-chat";
const responses = "openai-responses";
const messages = "anthropic-messages";
const google = "google-generate";

describe("a search that a client of another dialect asks for", () => {
  test.each<[pair: [DialectId, DialectId], fields: JsonObject, body: JsonObject, lost: string[]]>([
    [
      [messages, responses],
      { tools: [claudes], tool_choice: { type: "tool", name: "web_search" } },
      {
        tools: [
          {
            type: "web_search",
            filters: { allowed_domains: ["a.test"] },
            user_location: location,
          },
        ],
        max_tool_calls: 3,
        tool_choice: "required",
        include: ["web_search_call.action.sources"],
      },
      [],
    ],
    [
      [responses, messages],
      { tools: [openais], tool_choice: { type: "web_search_preview" } },
      {
        tools: [{ ...bare, blocked_domains: ["b.test"], user_location: location }],
        tool_choice: { type: "tool", name: "web_search" },
      },
      ["tools[0].search_context_size"],
    ],
    [
      [responses, messages],
      { tools: [openais], tool_choice: { type: "web_search" }, reasoning: { effort: "high" } },
      { tool_choice: { type: "tool", name: "web_search" } },
      ["tools[0].search_context_size", "reasoning"],
    ],
    [
      [responses, google],
      { tools: [openais] },
      { tools: [{ googleSearch: {} }] },
      [
        "tools[0].search_context_size",
        "tools[0].filters.blocked_domains",
        "tools[0].user_location",
      ],
    ],
    [[google, messages], { tools: [{ googleSearch: {} }] }, { tools: [bare] }, []],
    [
      [google, responses],
      { tools: [{ googleSearch: {} }] },
      { tools: [{ type: "web_search" }] },
      [],
    ],
    [
      [chat, responses],
      {
        web_search_options: {
          search_context_size: "low",
          user_location: { type: "approximate", approximate: { city: "Rome" } },
        },
      },
      { tools: [{ type: "web_search", search_context_size: "low", user_location: location }] },
      [],
    ],
    [
      [chat, messages],
      {
        tools: [
          {
            type: "openrouter:web_search",
            parameters: { excluded_domains: ["b.test"], engine: "auto" },
          },
        ],
      },
      { tools: [{ ...bare, blocked_domains: ["b.test"] }] },
      ["tools[0].parameters.engine"],
    ],
  ])("%j is sent in its provider's words: %j", (pair, fields, body, lost) => {
    const found = sent(pair, fields);
    expect(found.body).toMatchObject(body);
    expect(found.lost).toEqual(lost);
  });

  test.each<[what: string, pair: [DialectId, DialectId], fields: Record<string, unknown>]>([
    ["no price is known", [messages, responses], { tools: [claudes], searches: false }],
    ["no price is known", [responses, google], { tools: [openais], searches: false }],
    ["each request would search", [messages, chat], { tools: [claudes] }],
    [
      "OpenAI is to read what it has stored",
      [responses, messages],
      { tools: [{ type: "web_search", external_web_access: false }] },
    ],
  ])("is lost by name where %s: %j", (_, pair, fields) => {
    const { body, lost } = sent(pair, fields);
    expect(lost).toEqual(["tools[0]"]);
    expect(body).not.toHaveProperty("tools");
  });
});

const call = {
  type: "web_search_call",
  id: "ws_1",
  status: "completed",
  action: {
    type: "search",
    queries: ["q"],
    query: "q",
    sources: [{ type: "url", url: "https://a.test/" }],
  },
};
const use = {
  type: "server_tool_use",
  id: "srvtoolu_1",
  name: "web_search",
  input: { query: "q" },
};
const page = { type: "web_search_result", url: "https://a.test/", title: "A", page_age: null };
const result = (sealed: string) => ({
  type: "web_search_tool_result",
  tool_use_id: "srvtoolu_1",
  content: [{ ...page, encrypted_content: sealed }],
});
const found = {
  type: "web_search_call",
  status: "completed",
  action: { ...call.action, queries: ["q"] },
};

/** Returns an answer for a client, whole and as its events, and what was lost of it. */
function answered([client, upstream]: readonly [DialectId, DialectId], answer: JsonObject) {
  const response = upstreamDialects[upstream].decodeResponse(answer, { providerId: "p" });
  const losses = new AnswerLosses(clientOf(client), {});
  losses.observeWhole(response);
  const encoder = clientOf(client).createStreamEncoder({});
  const frames = [...responseParts(response)].flatMap((part) => encoder.encode(part));
  return {
    body: clientOf(client).encodeResponse(response, {}),
    events: frames.join(""),
    lost: losses.list.map(({ field }) => field),
  };
}

test("beside Anthropic's search, the client's own function of that name has another", () => {
  const own = { type: "function", name: "web_search", parameters: { type: "object" } };
  const input = [
    { role: "user", content: "Hi" },
    { type: "function_call", call_id: "c", name: "web_search", arguments: "{}" },
    { type: "function_call_output", call_id: "c", output: "none" },
  ];
  const { body, lost } = sent([responses, messages], {
    input,
    tools: [own, { type: "web_search" }],
    tool_choice: { type: "function", name: "web_search" },
  });
  const name: unknown = expect.stringMatching(/^web_search_+[0-9a-f]{8}$/);
  expect(body).toMatchObject({
    messages: [{}, { content: [{ type: "tool_use", name }] }, {}],
    tools: [{ name, input_schema: {} }, bare],
    tool_choice: { name },
  });
  expect(lost).toEqual([]);
  const alone = sent([responses, messages], { tools: [own] });
  expect(alone.body).toHaveProperty("tools.0.name", "web_search");
});

describe("a search that a provider has run", () => {
  const usage = { input_tokens: 1, output_tokens: 1 };

  test("by OpenAI is Anthropic's two blocks, with their number", () => {
    const said = { type: "message", content: [{ type: "output_text", text: "So." }] };
    const { body, events, lost } = answered([messages, responses], {
      id: "resp_1",
      status: "completed",
      output: [call, said],
      usage,
    });
    const blocks = [
      { ...use, id: "srvtoolu_ws_1" },
      {
        type: "web_search_tool_result",
        content: [{ url: "https://a.test/", encrypted_content: "" }],
      },
      { type: "text", text: "So." },
    ];
    expect(body).toMatchObject({
      content: blocks,
      usage: { server_tool_use: { web_search_requests: 1 } },
    });
    expect(events).toContain('"content_block":{"type":"server_tool_use","id":"srvtoolu_ws_1"');
    expect(events).toContain('"content_block":{"type":"web_search_tool_result"');
    expect(events).toContain('"web_search_requests":1');
    expect(lost).toEqual([]);
  });

  test("by Anthropic is an item of Responses", () => {
    const { body, events, lost } = answered([responses, messages], {
      id: "msg_1",
      type: "message",
      content: [use, result("sealed"), { type: "text", text: "So." }],
      stop_reason: "end_turn",
      usage,
    });
    expect(body.output).toMatchObject([found, { type: "message" }]);
    for (const step of ["in_progress", "searching", "completed"])
      expect(events).toContain(`event: response.web_search_call.${step}`);
    expect(lost).toEqual([]);
  });

  test("by Gemini beside functions is either's, without addresses", () => {
    const step = { toolType: "GOOGLE_SEARCH_WEB", id: "s-1" };
    const answer = {
      candidates: [
        {
          content: {
            parts: [
              { toolCall: { ...step, args: { queries: ["q"] } }, thoughtSignature: "seal" },
              { toolResponse: { ...step, response: {} }, thoughtSignature: "seal" },
              { text: "So." },
            ],
          },
          finishReason: "STOP",
        },
      ],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
    };
    const ofClaude = answered([messages, google], answer);
    expect(ofClaude.body.content).toMatchObject([
      { ...use, id: "srvtoolu_s_1" },
      { type: "web_search_tool_result", content: [] },
      { type: "text", text: "So." },
    ]);
    // Google names the queries there alone where the turn ends in a call.
    expect(ofClaude.body.usage).toMatchObject({ server_tool_use: { web_search_requests: 1 } });
    const ofOpenai = answered([responses, google], answer);
    expect(ofOpenai.body.output).toMatchObject([
      { type: "web_search_call", action: { query: "q", sources: [] } },
      { type: "message" },
    ]);
    expect([ofClaude.lost, ofOpenai.lost]).toEqual([[], []]);
  });

  test("goes back to OpenAI from a Messages client without an id", () => {
    const turns = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: [use, result(""), { type: "text", text: "So." }] },
      { role: "user", content: "Sure?" },
    ];
    const { body, lost } = sent([messages, responses], { messages: turns });
    expect(body.input).toMatchObject([{ role: "user" }, found, { role: "assistant" }, {}]);
    expect(body.input).not.toHaveProperty([1, "id"]);
    expect(lost).toEqual([]);
  });
});

test("searches of other providers do not reach Anthropic, nor what cites them", () => {
  const citation = { type: "web_search_result_location", url: "https://a.test/", cited_text: "" };
  const said = { type: "text", text: "So.", citations: [{ ...citation, encrypted_index: "" }] };
  const ownText = { type: "text", text: "So.", citations: [{ ...citation, encrypted_index: "x" }] };
  const turn = (...content: object[]) => [
    { role: "user", content: "Hi" },
    { role: "assistant", content },
    { role: "user", content: "Sure?" },
  ];
  const passed = (content: object[]) => {
    const body = { ...asks[messages], messages: turn(...content) };
    const { requestText, losses } = clientOf(messages).passThrough(
      { text: JSON.stringify(body), body, dialectHeaders: {}, traceId: "t" } as never,
      { route: { provider: { id: "anthropic", deviations: {} }, upstreamModel: "m-1" } } as never,
    );
    const { content: kept } = (JSON.parse(requestText) as typeof body).messages[1] ?? {};
    return { kept, lost: losses.map(({ field }) => field) };
  };
  expect(passed([use, result(""), said])).toEqual({
    kept: [{ type: "text", text: "So." }] as never,
    lost: ["messages[1].content[0]", "messages[1].content[1]"],
  });
  const empty = { ...result(""), tool_use_id: "toolu_1", content: [] };
  expect(passed([{ ...use, id: "toolu_1" }, empty, ownText]).kept).toEqual([ownText] as never);
  const own = [use, result("sealed"), ownText];
  expect(passed(own)).toEqual({ kept: own as never, lost: [] });
});

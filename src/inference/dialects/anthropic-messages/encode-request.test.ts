import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../canonical/json.ts";
import type { Message } from "../../canonical/message.ts";
import type { CanonicalRequest, Tool } from "../../canonical/request.ts";
import type { EncodedRequest, EncodeRequestOptions } from "../dialect.ts";
import { encodeRequest } from "./encode-request.ts";

const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });
const chat: CanonicalRequest = {
  dialect: "openai-chat",
  model: "m",
  stream: false,
  messages: [user("Hi")],
  maxOutputTokens: 300,
};
const encode = (
  changes: Partial<CanonicalRequest>,
  options: Partial<EncodeRequestOptions> = {},
): EncodedRequest =>
  encodeRequest(
    { ...chat, ...changes },
    { upstreamModel: "claude-sonnet-4-5", stream: false, providerId: "anthropic", ...options },
  );
const bodyOf = (
  changes: Partial<CanonicalRequest>,
  options?: Partial<EncodeRequestOptions>,
): JsonObject => encode(changes, options).body;
const lossesOf = (
  changes: Partial<CanonicalRequest>,
  options?: Partial<EncodeRequestOptions>,
): string[] => encode(changes, options).losses.map((loss) => loss.field);

describe("a conversation that contains calls", () => {
  const call: Message = {
    role: "assistant",
    parts: [{ type: "tool-call", kind: "function", id: "c", name: "f.1", arguments: "{}" }],
  };
  const result: Message = { role: "tool", toolCallId: "c", parts: [{ type: "text", text: "1" }] };
  const messages = [user("Hi"), call, result, call, result];
  const web: Tool = { type: "hosted", dialect: "openai-responses", value: { type: "web_search" } };

  test.each<[name: string, tools: Tool[] | undefined]>([
    ["no tools", undefined],
    ["only tools that cannot be sent", [web]],
  ])("and %s declares the called ones, each once, and forbids calls", (_, tools) => {
    const { body } = encode({ messages, ...(tools && { tools }), toolChoice: { type: "auto" } });
    const [, turn] = body.messages as { content: { name: string }[] }[];
    const name = turn?.content[0]?.name;
    expect(name).toMatch(/^f_1_[0-9a-f]+$/);
    expect(body).toMatchObject({
      tools: [{ name, input_schema: { type: "object", properties: {} } }],
      tool_choice: { type: "none" },
    });
    expect(body.tools).toHaveLength(1);
  });

  test("is sent as it is if Messages is the client's own dialect, or without calls", () => {
    expect(bodyOf({ dialect: "anthropic-messages", messages })).not.toHaveProperty("tools");
    expect(bodyOf({})).not.toHaveProperty("tools");
  });
});

describe("max_tokens", () => {
  const rows: [wanted: number | undefined, model: number | undefined, sent: number][] = [
    [300, 8_192, 300],
    [undefined, 8_192, 8_192],
    [undefined, undefined, 4_096],
    [9_000, 8_192, 8_192],
  ];
  test.each(rows)("for a requested %p and a model maximum of %p is %p", (wanted, model, sent) => {
    const { maxOutputTokens: _, ...rest } = chat;
    const request = { ...rest, ...(wanted !== undefined && { maxOutputTokens: wanted }) };
    const { body, losses } = encodeRequest(request, {
      upstreamModel: "m",
      stream: false,
      providerId: "p",
      ...(model !== undefined && { maxCompletionTokens: model }),
    });
    expect(body.max_tokens).toBe(sent);
    expect(losses.map((loss) => loss.field)).toEqual(wanted === 9_000 ? ["max_tokens"] : []);
  });
});

describe("sampling parameters", () => {
  const sampling = { temperature: 1.6, topP: 0.5, topK: 5, seed: 1, frequencyPenalty: 0.5 };
  const rows: [model: string, sent: object, losses: string[]][] = [
    [
      "kimi-k2",
      { temperature: 1, top_p: 0.5, top_k: 5 },
      ["frequency_penalty", "seed", "temperature"],
    ],
    [
      "claude-3-5-haiku-20241022",
      { temperature: 1, top_p: 0.5, top_k: 5 },
      ["frequency_penalty", "seed", "temperature"],
    ],
    [
      "claude-sonnet-4-5-20250929",
      { temperature: 1, top_k: 5 },
      ["frequency_penalty", "seed", "top_p", "temperature"],
    ],
    ["claude-opus-4-7", {}, ["frequency_penalty", "seed", "temperature", "top_p", "top_k"]],
    [
      "anthropic.claude-sonnet-5-v1:0",
      {},
      ["frequency_penalty", "seed", "temperature", "top_p", "top_k"],
    ],
  ];
  test.each(rows)("for %s", (upstreamModel, sent, losses) => {
    const { temperature, top_p, top_k } = bodyOf({ sampling }, { upstreamModel });
    expect(JSON.parse(JSON.stringify({ temperature, top_p, top_k }))).toEqual(sent);
    expect(lossesOf({ sampling }, { upstreamModel })).toEqual(losses);
  });

  test("with default values are not losses", () => {
    expect(
      lossesOf({ sampling: { temperature: 1, topP: 1 } }, { upstreamModel: "claude-opus-4-8" }),
    ).toEqual([]);
  });
});

describe("reasoning", () => {
  const opus = { upstreamModel: "claude-opus-4-7" };
  const rows: [
    reasoning: CanonicalRequest["reasoning"],
    options: Partial<EncodeRequestOptions>,
    sent: object,
  ][] = [
    [{ effort: "none" }, opus, { max_tokens: 300, thinking: { type: "disabled" } }],
    [
      { effort: "minimal" },
      opus,
      { max_tokens: 300, thinking: { type: "adaptive" }, output_config: { effort: "low" } },
    ],
    [
      { effort: "xhigh", summary: "auto" },
      opus,
      {
        max_tokens: 300,
        thinking: { type: "adaptive", display: "summarized" },
        output_config: { effort: "xhigh" },
      },
    ],
    [
      { effort: "low", exclude: true },
      opus,
      {
        max_tokens: 300,
        thinking: { type: "adaptive", display: "omitted" },
        output_config: { effort: "low" },
      },
    ],
    [
      { enabled: true },
      opus,
      { max_tokens: 300, thinking: { type: "adaptive" }, output_config: { effort: "high" } },
    ],
    [{ summary: "auto" }, opus, { max_tokens: 300 }],
  ];
  test.each(rows)("%j with %j", (reasoning, options, sent) => {
    const { max_tokens, thinking, output_config } = bodyOf(
      { ...(reasoning && { reasoning }) },
      options,
    );
    expect(JSON.parse(JSON.stringify({ max_tokens, thinking, output_config }))).toEqual(sent);
  });

  test.each([
    ["claude-sonnet-4-6", "xhigh", "high", ["reasoning.effort"]],
    ["claude-opus-4-7", "minimal", "low", ["reasoning.effort"]],
    ["claude-opus-4-6", "max", "max", []],
    ["claude-opus-4-7", "xhigh", "xhigh", []],
  ])("at %s an effort %s is %s, which is named where it changes", (model, effort, sent, lost) => {
    const asked = { reasoning: { effort } };
    expect(bodyOf(asked, { upstreamModel: model })).toHaveProperty("output_config.effort", sent);
    expect(lossesOf(asked, { upstreamModel: model })).toEqual(lost);
  });

  const unbounded = { maxOutputTokens: undefined } as object as Partial<CanonicalRequest>;
  const budgetRows: readonly (readonly [
    asked: Partial<CanonicalRequest>,
    options: Partial<EncodeRequestOptions>,
    sent: readonly [maxTokens: number, budget: number | undefined],
    isLost: boolean,
  ])[] = [
    // Where the client sets no bound, the cap is raised above the budget.
    [{ reasoning: { effort: "medium" }, ...unbounded }, {}, [8_192, 4_096], false],
    [
      { reasoning: { effort: "high" }, ...unbounded },
      { maxCompletionTokens: 8_192 },
      [8_192, 6_553],
      false,
    ],
    // A client's bound is kept: the budget is cut below it, or reasoning is off.
    [{ reasoning: { effort: "high" }, maxOutputTokens: 500 }, {}, [500, undefined], true],
    [{ reasoning: { effort: "high" }, maxOutputTokens: 1_024 }, {}, [1_024, undefined], true],
    [{ reasoning: { effort: "high" }, maxOutputTokens: 1_025 }, {}, [1_025, 1_024], true],
    [{ reasoning: { effort: "high" }, maxOutputTokens: 8_000 }, {}, [8_000, 6_400], true],
    [{ reasoning: { effort: "low" }, maxOutputTokens: 8_000 }, {}, [8_000, 1_024], false],
    [{ reasoning: { budgetTokens: 500 }, maxOutputTokens: 8_000 }, {}, [8_000, 1_024], false],
    [
      { reasoning: { effort: "low" }, maxOutputTokens: 1_200 },
      { maxCompletionTokens: 1_100 },
      [1_100, 1_024],
      false,
    ],
  ];
  test.each(budgetRows)(
    "a budget for %j with %j",
    (asked, options, [maxTokens, budget], isLost) => {
      const { max_tokens, thinking } = bodyOf(asked, options);
      expect(max_tokens).toBe(maxTokens);
      expect(thinking).toEqual(
        budget === undefined ? undefined : { type: "enabled", budget_tokens: budget },
      );
      expect(lossesOf(asked, options).includes("reasoning")).toBe(isLost);
    },
  );

  test("without room is omitted and a loss", () => {
    expect(
      bodyOf({ reasoning: { effort: "low" } }, { maxCompletionTokens: 900 }),
    ).not.toHaveProperty("thinking");
    expect(lossesOf({ reasoning: { effort: "low" } }, { maxCompletionTokens: 900 })).toEqual([
      "reasoning",
    ]);
  });

  test("is omitted with a forced tool", () => {
    const tools = [{ type: "function", name: "f" }] as const;
    const forced = {
      reasoning: { effort: "low" },
      tools,
      toolChoice: { type: "required" },
    } as const;
    expect(bodyOf(forced, opus)).not.toHaveProperty("thinking");
    expect(lossesOf(forced, opus)).toEqual(["reasoning"]);
  });

  test("removes sampling parameters", () => {
    expect(
      lossesOf({
        reasoning: { effort: "low" },
        sampling: { temperature: 0.2 },
        maxOutputTokens: 3_000,
      }),
    ).toEqual(["temperature"]);
  });

  test("with a budget requires the reasoning of open tool calls", () => {
    const turn = (provider: string): Message[] => [
      user("Hi"),
      {
        role: "assistant",
        parts: [
          { type: "reasoning", text: "t", signature: "s", provenance: { providerId: provider } },
          { type: "tool-call", kind: "function", id: "a", name: "f", arguments: "{}" },
        ],
      },
      { role: "tool", toolCallId: "a", parts: [] },
    ];
    expect(
      bodyOf({
        reasoning: { effort: "low" },
        messages: turn("anthropic"),
        maxOutputTokens: 3_000,
      }),
    ).toHaveProperty("thinking.type", "enabled");
    expect(lossesOf({ reasoning: { effort: "low" }, messages: turn("google") })).toEqual([
      "messages[1].content[0]",
      "reasoning",
    ]);
  });
});

describe("structured output", () => {
  const schema = {
    type: "object",
    properties: { a: { type: "array", items: { type: "object", properties: {} } } },
    $defs: { b: { type: "object" } },
  };

  test("closes every object of the schema", () => {
    const { output_config: config } = bodyOf({
      output: { type: "json-schema", name: "n", schema, strict: true },
    });
    expect(config).toEqual({
      format: {
        type: "json_schema",
        schema: {
          type: "object",
          additionalProperties: false,
          properties: {
            a: {
              type: "array",
              items: { type: "object", properties: {}, additionalProperties: false },
            },
          },
          $defs: { b: { type: "object", properties: {}, additionalProperties: false } },
        },
      },
    });
  });

  test("without a schema becomes an instruction", () => {
    const { system, output_config } = bodyOf({ output: { type: "json" } });
    expect([system, output_config]).toEqual([
      "Answer with one JSON object and nothing else, without a code fence.",
      undefined,
    ]);
    expect(lossesOf({ output: { type: "json" } })).toEqual(["response_format"]);
  });

  test("for a model without schema support becomes an instruction", () => {
    const old = { upstreamModel: "claude-3-5-haiku-20241022" };
    expect(bodyOf({ output: { type: "json-schema", schema } }, old).system).toContain(
      JSON.stringify(schema),
    );
    expect(lossesOf({ output: { type: "json-schema", schema } }, old)).toEqual(["response_format"]);
  });
});

describe("requests that Messages cannot express are refused:", () => {
  const rows: [param: string, changes: Partial<CanonicalRequest>][] = [
    ["n", { choiceCount: 2 }],
    ["logprobs", { logProbabilities: {} }],
    ["modalities", { modalities: ["text", "audio"] }],
    [
      "messages[0].content[0]",
      { messages: [{ role: "user", parts: [{ type: "audio", data: "A", format: "wav" }] }] },
    ],
    [
      "messages[0].content[0]",
      {
        messages: [
          { role: "user", parts: [{ type: "image", source: { type: "file", fileId: "f" } }] },
        ],
      },
    ],
    [
      "messages[0].content[0]",
      {
        messages: [
          {
            role: "user",
            parts: [
              { type: "image", source: { type: "base64", mediaType: "image/heic", data: "AAAA" } },
            ],
          },
        ],
      },
    ],
    [
      "messages[0].content[0]",
      {
        messages: [
          {
            role: "user",
            parts: [
              {
                type: "document",
                source: { type: "base64", mediaType: "application/zip", data: "UEs" },
              },
            ],
          },
        ],
      },
    ],
    [
      "messages[0].content[0]",
      {
        messages: [
          {
            role: "user",
            parts: [{ type: "opaque", dialect: "openai-chat", value: { type: "video_url" } }],
          },
        ],
      },
    ],
  ];
  test.each(rows)("%s of %j", (param, changes) => {
    expect(() => encode(changes)).toThrow(
      expect.objectContaining({ code: "unsupported_content", param }),
    );
  });
});

describe("fields that Messages cannot express are losses:", () => {
  const rows: [field: string, changes: Partial<CanonicalRequest>][] = [
    ["verbosity", { verbosity: "low" }],
    ["prediction", { prediction: { type: "content", content: "a" } }],
    ["web_search_options", { webSearch: {} }],
    ["prompt_cache_retention", { promptCaching: { retention: "24h" } }],
    ["service_tier", { serviceTier: "flex" }],
    ["stop[1]", { stop: ["END", "\n"] }],
    ["x_foo", { extensions: { dialect: "openai-chat", fields: { x_foo: 1, x_bar: null } } }],
    [
      "tools[0]",
      { tools: [{ type: "hosted", dialect: "openai-responses", value: { type: "web_search" } }] },
    ],
    [
      "messages[0].name",
      { messages: [{ role: "user", name: "Ann", parts: [{ type: "text", text: "a" }] }] },
    ],
  ];
  test.each(rows)("%s of %j", (field, changes) => {
    expect(lossesOf(changes)).toEqual([field]);
  });

  test("a field that the upstream refuses is omitted", () => {
    const { body, losses } = encode(
      { sampling: { topK: 5 } },
      { deviations: { unsupportedFields: ["top_k"] } },
    );
    expect(body).not.toHaveProperty("top_k");
    expect(losses).toEqual([{ field: "top_k", reason: "the upstream does not take it" }]);
  });
});

test("a user id with personal data is hashed, other ids are sent unchanged", () => {
  const idOf = (endUserId: string): unknown =>
    (bodyOf({ endUserId }).metadata as JsonObject).user_id;
  expect(idOf("u-1")).toBe("u-1");
  expect(idOf("ann@example.com")).toMatch(/^user_[0-9a-f]{32}$/);
  expect(idOf("ann@example.com")).toBe(idOf("ann@example.com"));
  expect(idOf("+49 170 1234567")).toMatch(/^user_/);
});

test("a fifth cache marker replaces the first", () => {
  const marked = (text: string): Message => ({
    role: "user",
    parts: [{ type: "text", text, cache: { ttl: "30m" } }],
  });
  const { body, losses } = encode({
    tools: [{ type: "function", name: "f", cache: {} }],
    messages: [
      { role: "system", parts: [{ type: "text", text: "s", cache: { ttl: "1h" } }] },
      ...["a", "b", "c"].map(marked),
    ],
  });
  expect(JSON.stringify(body.tools)).not.toContain("cache_control");
  expect(
    JSON.stringify(body).match(/"cache_control":\{"type":"ephemeral"(?:,"ttl":"1h")?\}/g),
  ).toHaveLength(4);
  expect(losses.map((loss) => loss.field)).toEqual(["cache_control", "cache_control.ttl"]);
});

import {
  all,
  at,
  blocksOf,
  fieldsOf,
  isAbove,
  isOpen,
  isOther,
  isSet,
  listOf,
  schemasIn,
  someBlock,
  someTurn,
  turnsOf,
} from "../reading.ts";
import { type Fields, rulesOf, type VendorRequest, type VendorRule } from "../rule.ts";
import { askClaude, claudeHistory, claudeTool, schemaOf } from "../samples.ts";
import { anthropicError as envelope, thoughtRules } from "./anthropic-thoughts.ts";
import { toolRules } from "./anthropic-tools.ts";

/** Claude 4.7 and later. */
const since47 = /claude-(?:(?:opus|sonnet|haiku|fable|mythos)-)?(?:4-[7-9]|[5-9])(?!\d)/;
/** Claude 4.6 and later. */
const adaptiveModels = /claude-(?:(?:opus|sonnet|haiku|fable|mythos)-)?(?:4-[6-9]|[5-9])(?!\d)/;
/** Claude up to 4.5. */
const budgetModels = /claude-(?:3-7-sonnet|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?!-\d(?!\d)))/;
/** Claude up to 4.7. */
const before48 = /claude-(?:3|(?:opus|sonnet|haiku)-4(?:-[0-7])?(?!-\d(?!\d)))/;
/** Claude whose thinking cannot be turned off. */
const thinkers = /claude-(?:fable|mythos|opus-5-5)/;
const since41 = /claude-(?:(?:opus|sonnet|haiku|fable|mythos)-)?(?:4-[1-9](?!\d)|[5-9])/;
const withoutEffort = /claude-(?:3|haiku-4-5|sonnet-4-5|opus-4-1|sonnet-4-0|opus-4-0)/;

const thinks = ({ body }: VendorRequest): boolean =>
  at(body, "thinking.type") === "enabled" || at(body, "thinking.type") === "adaptive";
const hasBudget = ({ body }: VendorRequest): boolean => at(body, "thinking.type") === "enabled";
const forcesTool = ({ body }: VendorRequest): boolean =>
  ["any", "tool"].includes(String(at(body, "tool_choice.type")));
const lastTurn = (request: VendorRequest): Fields => turnsOf(request).at(-1) ?? {};
const uses = (turn: Fields | undefined): Fields[] =>
  blocksOf(turn ?? {}).filter(({ type }) => type === "tool_use");
const results = (turn: Fields | undefined): Fields[] =>
  blocksOf(turn ?? {}).filter(({ type }) => type === "tool_result");

/**
 * Returns whether any turn meets a condition, with consecutive ones of a side joined, as Anthropic
 * joins them (@anthropic-ai/sdk 1.11, `messages` of `MessageCreateParams`).
 */
const someJoinedTurn =
  (condition: (turn: Fields, index: number, turns: readonly Fields[]) => boolean) =>
  (request: VendorRequest): boolean => {
    const joined: { role: unknown; content: Fields[] }[] = [];
    for (const turn of turnsOf(request)) {
      const last = joined.at(-1);
      if (last !== undefined && last.role === turn["role"]) last.content.push(...blocksOf(turn));
      else joined.push({ role: turn["role"], content: [...blocksOf(turn)] });
    }
    return joined.some(condition);
  };

const thinkingDocs = "platform.claude.com/docs/en/build-with-claude/extended-thinking (2026-11)";
const liveProbe = "github.com/workglow-dev/libs/pull/746 (2026-08-13)";
const migration = "platform.claude.com/docs/en/api/migration-2026-10-21 (2026-10-21)";
const budget = (tokens: number): Fields => ({
  thinking: { type: "enabled", budget_tokens: tokens },
});

const sampling = rulesOf({ vendor: "anthropic", endpoint: "messages", body: envelope }, [
  ...(
    [
      ["temperature", 0.2],
      ["top_p", 0.5],
      ["top_k", 5],
    ] as const
  ).map(([field, value]) => ({
    id: `newer-${field.replace("_", "-")}`,
    models: since47,
    when: isOther(field, 1),
    says: `${field}: this model does not support this parameter.`,
    source: migration,
    violates: { model: "claude-opus-4-7", body: askClaude({ [field]: value }) },
  })),
  {
    id: "temperature-and-top-p",
    models: since41,
    when: all(isSet("temperature"), isSet("top_p")),
    says: "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
    source: "github.com/mem0ai/mem0/pull/4147 (2026-02-26)",
    violates: { model: "claude-sonnet-4-5", body: askClaude({ temperature: 0.5, top_p: 0.5 }) },
  },
  {
    id: "temperature-range",
    when: isAbove("temperature", 1),
    says: "temperature: range: 0..1",
    source: "@anthropic-ai/sdk 1.11, resources/messages (2026-11-21)",
    violates: { model: "claude-sonnet-4-5", body: askClaude({ temperature: 1.5 }) },
  },
  ...(
    [
      ["frequency_penalty", 0.5],
      ["seed", 1],
      ["n", 2],
      ["stop", "END"],
      ["response_format", { type: "json_object" }],
      ["reasoning_effort", "low"],
      ["user", "u"],
    ] as const
  ).map(([field, value]) => ({
    id: `unknown-${field.replace("_", "-")}`,
    when: isSet(field),
    says: `${field}: Extra inputs are not permitted`,
    source: "@anthropic-ai/sdk 1.11, resources/messages (2026-11-21)",
    violates: { model: "claude-sonnet-4-5", body: askClaude({ [field]: value }) },
  })),
]);

const thinkingRules = rulesOf({ vendor: "anthropic", endpoint: "messages", body: envelope }, [
  {
    id: "budget-on-newer",
    models: since47,
    when: hasBudget,
    says: '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort".',
    source: thinkingDocs,
    violates: {
      model: "claude-opus-4-7",
      body: askClaude({ max_tokens: 4_096, ...budget(2_048) }),
    },
  },
  {
    id: "thinking-disabled",
    models: thinkers,
    when: ({ body }) => at(body, "thinking.type") === "disabled",
    says: '"thinking.type.disabled" is not supported for this model.',
    source:
      "github.com/danny-avila/LibreChat/pull/14422 (2026-07-24), " +
      "github.com/stdapi-ai/stdapi.ai/issues/284 (2026-09-22)",
    violates: { model: "claude-fable-5", body: askClaude({ thinking: { type: "disabled" } }) },
  },
  {
    id: "forced-tool-on-thinker",
    models: thinkers,
    when: forcesTool,
    says: "Thinking may not be enabled when tool_choice forces tool use.",
    source: "github.com/stdapi-ai/stdapi.ai/issues/284 (2026-09-22)",
    violates: {
      model: "claude-opus-5-5",
      body: askClaude({ tools: [claudeTool()], tool_choice: { type: "any" } }),
    },
  },
  {
    id: "adaptive-on-older",
    models: budgetModels,
    when: ({ body }) => at(body, "thinking.type") === "adaptive",
    says: "adaptive thinking is not supported on this model",
    source: thinkingDocs,
    violates: { model: "claude-sonnet-4-5", body: askClaude({ thinking: { type: "adaptive" } }) },
  },
  {
    id: "effort-on-older",
    models: withoutEffort,
    when: isSet("output_config.effort"),
    says: "This model does not support the effort parameter.",
    source: "github.com/sst/opencode, provider/transform.ts (2026-11)",
    violates: {
      model: "claude-haiku-4-5",
      body: askClaude({ output_config: { effort: "high" } }),
    },
  },
  {
    id: "effort-level",
    models: /claude-(?:(?:opus|sonnet)-4-6|opus-4-5)/,
    when: ({ body }) => at(body, "output_config.effort") === "xhigh",
    says: "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
    source: "github.com/Yeachan-Heo/gajae-code/issues/3913 (2026-08-06)",
    violates: {
      model: "claude-sonnet-4-6",
      body: askClaude({ output_config: { effort: "xhigh" } }),
    },
  },
  {
    id: "budget-too-small",
    when: all(hasBudget, ({ body }) => Number(at(body, "thinking.budget_tokens")) < 1_024),
    says: "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    source: liveProbe,
    violates: { model: "claude-haiku-4-5", body: askClaude(budget(512)) },
  },
  {
    id: "budget-above-cap",
    when: all(
      hasBudget,
      ({ body }) => Number(at(body, "thinking.budget_tokens")) >= Number(body["max_tokens"]),
    ),
    says: "`max_tokens` must be greater than `thinking.budget_tokens`.",
    source: "agentgateway PR#3518, litellm PR#31364 (2026-11-21)",
    violates: { model: "claude-haiku-4-5", body: askClaude(budget(1_024)) },
  },
  {
    id: "temperature-while-thinking",
    when: all(thinks, isOther("temperature", 1)),
    says: "`temperature` may only be set to 1 when thinking is enabled.",
    source: liveProbe,
    violates: {
      model: "claude-haiku-4-5",
      body: askClaude({ max_tokens: 4_096, ...budget(1_024), temperature: 0 }),
    },
  },
  {
    id: "top-k-while-thinking",
    when: all(thinks, isSet("top_k")),
    says: "`top_k` must be unset when thinking is enabled.",
    source: thinkingDocs,
    violates: {
      model: "claude-haiku-4-5",
      body: askClaude({ max_tokens: 4_096, ...budget(1_024), top_k: 5 }),
    },
  },
  {
    id: "top-p-while-thinking",
    when: all(thinks, ({ body }) => typeof body["top_p"] === "number" && body["top_p"] < 0.95),
    says: "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.",
    source: thinkingDocs,
    violates: {
      model: "claude-haiku-4-5",
      body: askClaude({ max_tokens: 4_096, ...budget(1_024), top_p: 0.5 }),
    },
  },
  {
    id: "forced-tool-while-thinking",
    when: all(thinks, forcesTool),
    says: "Thinking may not be enabled when tool_choice forces tool use.",
    source: liveProbe,
    violates: {
      model: "claude-haiku-4-5",
      body: askClaude({
        max_tokens: 4_096,
        ...budget(1_024),
        tools: [claudeTool()],
        tool_choice: { type: "any" },
      }),
    },
  },
  {
    id: "calls-without-thought",
    models: budgetModels,
    when: all(hasBudget, (request) => {
      const before = turnsOf(request).at(-2);
      return (
        results(lastTurn(request)).length > 0 &&
        uses(before).length > 0 &&
        !String(blocksOf(before ?? {})[0]?.["type"]).endsWith("thinking")
      );
    }),
    says:
      "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. " +
      "When `thinking` is enabled, a final `assistant` message must start with a thinking block.",
    source: "bifrost#5274 (2026-11-21)",
    violates: { model: "claude-haiku-4-5", body: { ...claudeHistory(), ...budget(1_024) } },
  },
  {
    id: "foreign-signature",
    when: someBlock(
      ({ type, signature }) =>
        type === "thinking" &&
        (typeof signature !== "string" || signature === "" || signature.startsWith("gw1:")),
    ),
    says: "messages.1.content.0: Invalid `signature` in `thinking` block",
    source: "claude-code#63269, hermes PR#35976 (2026-11-21)",
    violates: {
      model: "claude-sonnet-4-5",
      body: claudeHistory([{ type: "thinking", thinking: "Hm.", signature: "" }]),
    },
  },
]);

/** A prompt of which a later part is to be kept for longer than one before it. */
const twoLifetimes: Fields = {
  system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
  messages: [
    {
      role: "user",
      content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral", ttl: "1h" } }],
    },
  ],
};

const turnRules = rulesOf({ vendor: "anthropic", endpoint: "messages", body: envelope }, [
  {
    id: "empty-text",
    when: someBlock(({ type, text }) => type === "text" && text === ""),
    says: "messages: text content blocks must be non-empty",
    source: "references of the three dialects (2026-11-21)",
    violates: {
      model: "claude-sonnet-4-5",
      body: askClaude({ messages: [{ role: "user", content: [{ type: "text", text: "" }] }] }),
    },
  },
  {
    id: "trailing-white-space",
    when: (request) => {
      const last = lastTurn(request);
      return last["role"] === "assistant" && /\s$/.test(String(blocksOf(last).at(-1)?.["text"]));
    },
    says: "messages: final assistant content cannot end with trailing whitespace",
    source: "Portkey#995, vercel/ai PR#13479, claude-code#23440 (2026-11-21)",
    violates: {
      model: "claude-sonnet-4-5",
      body: askClaude({
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "So " },
        ],
      }),
    },
  },
  {
    id: "prefill-on-newer",
    models: adaptiveModels,
    when: (request) => lastTurn(request)["role"] === "assistant",
    says: "This model does not support assistant message prefill. The conversation must end with a user message.",
    source: "platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-6 (2026-11)",
    violates: {
      model: "claude-opus-4-6",
      body: askClaude({
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "So" },
        ],
      }),
    },
  },
  {
    id: "later-system",
    models: before48,
    when: someTurn(({ role }) => role === "system"),
    says: "role 'system' is not supported on this model",
    source: "github.com/anthropics/claude-code/issues/61242 (2026-05-21)",
    violates: {
      model: "claude-sonnet-4-6",
      body: askClaude({
        messages: [
          { role: "user", content: "Hi" },
          { role: "system", content: "Be brief." },
        ],
      }),
    },
  },
  {
    id: "calls-without-results",
    when: someJoinedTurn((turn, index, turns) =>
      uses(turn).some(
        ({ id }) => !results(turns[index + 1]).some((result) => result["tool_use_id"] === id),
      ),
    ),
    says: "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.",
    source: "kosong#45, pydantic-ai PR#653, bifrost#1164, mlflow#25788 (2026-11-21)",
    violates: {
      model: "claude-sonnet-4-5",
      body: { ...claudeHistory(), messages: (claudeHistory()["messages"] as Fields[]).slice(0, 2) },
    },
  },
  {
    id: "results-without-calls",
    when: someJoinedTurn((turn, index, turns) =>
      results(turn).some(
        ({ tool_use_id: id }) => !uses(turns[index - 1]).some((use) => use["id"] === id),
      ),
    ),
    says: "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1.",
    source: "cai#157, litellm#16525 (2026-11-21)",
    violates: {
      model: "claude-sonnet-4-5",
      body: { ...claudeHistory(), messages: (claudeHistory()["messages"] as Fields[]).slice(2) },
    },
  },
  {
    id: "call-id",
    when: someBlock(({ type, id }) => type === "tool_use" && !/^[a-zA-Z0-9_-]+$/.test(String(id))),
    says: "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    source: "ClawRouter#17, nanobot PR#4356, bifrost#5097 (2026-11-21)",
    violates: { model: "claude-sonnet-4-5", body: claudeHistory([], "functions.look_up:0") },
  },
  {
    id: "history-without-tools",
    when: all(
      someBlock(({ type }) => type === "tool_use" || type === "tool_result"),
      ({ body }) => listOf(body["tools"]).length === 0,
    ),
    says: "Requests which include `tool_use` or `tool_result` blocks must define tools.",
    source: "github.com/BerriAI/litellm, llms/anthropic (2026-11)",
    violates: { model: "claude-sonnet-4-5", body: { ...claudeHistory(), tools: undefined } },
  },
  {
    id: "too-many-markers",
    when: ({ body }) => (JSON.stringify(body).match(/"cache_control"/g) ?? []).length > 4,
    says: "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    source: "platform.claude.com/docs/en/build-with-claude/prompt-caching (2026-11)",
    violates: {
      model: "claude-sonnet-4-5",
      body: askClaude({
        system: Array.from({ length: 5 }, (_, index) => ({
          type: "text",
          text: `Rule ${index}.`,
          cache_control: { type: "ephemeral" },
        })),
      }),
    },
  },
  {
    id: "marker-lifetimes",
    when: ({ body }) => {
      const prompt = ["tools", "system", "messages"].map((field) => JSON.stringify(body[field]));
      const markers = prompt.join().match(/"cache_control":\{[^}]*\}/g) ?? [];
      const isLong = markers.map((marker) => marker.includes('"1h"'));
      return (
        isLong.includes(true) &&
        isLong.lastIndexOf(true) > isLong.indexOf(false) &&
        isLong.includes(false)
      );
    },
    says: "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.",
    source: "github.com/headroomlabs-ai/headroom/issues/2939 (2026-08-12)",
    violates: { model: "claude-sonnet-4-5", body: askClaude(twoLifetimes) },
  },
  {
    id: "blank-stop",
    when: ({ body }) =>
      Array.isArray(body["stop_sequences"]) &&
      body["stop_sequences"].some((text) => String(text).trim() === ""),
    says: "stop_sequences: each stop sequence must contain non-whitespace",
    source: "references of the three dialects (2026-11-21)",
    violates: { model: "claude-sonnet-4-5", body: askClaude({ stop_sequences: ["\n\n"] }) },
  },
  {
    id: "image-type",
    when: someBlock(
      ({ type, source }) =>
        type === "image" &&
        fieldsOf(source)["type"] === "base64" &&
        !["image/jpeg", "image/png", "image/gif", "image/webp"].includes(
          String(fieldsOf(source)["media_type"]),
        ),
    ),
    says: "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    source: "litellm PR#38267, hermes#55432, openclaw#102323 (2026-11-21)",
    violates: {
      model: "claude-sonnet-4-5",
      body: askClaude({
        messages: [
          {
            role: "user",
            content: [
              {
                type: "image",
                source: { type: "base64", media_type: "image/jpg", data: "/9j/4AAQSkZJRg==" },
              },
            ],
          },
        ],
      }),
    },
  },
  {
    id: "no-cap",
    when: ({ body }) => body["max_tokens"] === undefined,
    says: "max_tokens: Field required",
    source: "@anthropic-ai/sdk 1.11, resources/messages (2026-11-21)",
    violates: {
      model: "claude-sonnet-4-5",
      body: askClaude({ max_tokens: undefined }),
    },
  },
  {
    id: "cap-above-model",
    models: /claude-(?:opus-4-1|opus-4-0)/,
    when: isAbove("max_tokens", 32_000),
    says: "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for this model",
    source: "platform.claude.com/docs/en/about-claude/models/overview (2026-11)",
    violates: { model: "claude-opus-4-1", body: askClaude({ max_tokens: 64_000 }) },
  },
]);

/** Keywords of JSON Schema that Anthropic's constrained decoding does not compile. */
const unsupportedKeywords: Readonly<Record<string, Fields>> = {
  minimum: { type: "integer", minimum: 1 },
  maximum: { type: "number", maximum: 9 },
  exclusiveMinimum: { type: "number", exclusiveMinimum: 0 },
  exclusiveMaximum: { type: "number", exclusiveMaximum: 9 },
  multipleOf: { type: "integer", multipleOf: 5 },
  minLength: { type: "string", minLength: 1 },
  maxLength: { type: "string", maxLength: 9 },
  maxItems: { type: "array", items: { type: "string" }, maxItems: 9 },
  uniqueItems: { type: "array", items: { type: "string" }, uniqueItems: true },
  minProperties: { type: "object", properties: {}, additionalProperties: false, minProperties: 1 },
  oneOf: { oneOf: [{ type: "string" }, { type: "number" }] },
  not: { not: { type: "string" }, type: "number" },
};

/** Returns the schemas that the model is held to. */
function heldSchemas({ body }: VendorRequest): Fields[] {
  const format: unknown = at(body, "output_config.format.schema");
  return [
    ...(format === undefined ? [] : schemasIn(format)),
    ...listOf(body["tools"]).flatMap(({ strict, input_schema: schema }) =>
      strict === true ? schemasIn(schema) : [],
    ),
  ];
}

const held = (property: Fields, more: Fields = {}): VendorRule["violates"] => ({
  model: "claude-sonnet-4-5",
  body: askClaude({
    output_config: { format: { type: "json_schema", schema: schemaOf(property, more) } },
  }),
});
const sdkSource = "@anthropic-ai/sdk 1.11, lib/transform-json-schema (2026-11-21)";

const schemaRules = rulesOf({ vendor: "anthropic", endpoint: "messages", body: envelope }, [
  ...Object.entries(unsupportedKeywords).map(([keyword, property]) => ({
    id: `schema-${keyword.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
    when: (request: VendorRequest) =>
      heldSchemas(request).some((schema) => schema[keyword] !== undefined),
    says: `output_config.format.schema: For '${String(property["type"])}' type, property '${keyword}' is not supported`,
    source:
      keyword === "minimum" ? "github.com/agentjido/req_llm/issues/302 (2025-12-28)" : sdkSource,
    violates: held(property),
  })),
  {
    id: "schema-min-items",
    when: (request) => heldSchemas(request).some((schema) => Number(schema["minItems"] ?? 0) > 1),
    says: "output_config.format.schema: For 'array' type, 'minItems' values other than 0 or 1 are not supported",
    source: "github.com/ghostlobster/memorize-everything/issues/93 (2026-05-01)",
    violates: held({ type: "array", items: { type: "string" }, minItems: 2 }),
  },
  {
    id: "schema-format",
    when: (request) =>
      heldSchemas(request).some(
        ({ format }) =>
          format !== undefined &&
          !/^(?:date-time|time|date|duration|email|hostname|uri|ipv4|ipv6|uuid)$/.test(
            String(format),
          ),
      ),
    says: "output_config.format.schema: For 'string' type, format 'color' is not supported",
    source: sdkSource,
    violates: held({ type: "string", format: "color" }),
  },
  {
    id: "schema-open-object",
    when: (request) => heldSchemas(request).some(isOpen),
    says: "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
    source: sdkSource,
    violates: held({ type: "string" }, { additionalProperties: true }),
  },
  {
    id: "strict-tool-bounds",
    when: ({ body }) =>
      listOf(body["tools"]).some(
        ({ strict, input_schema: schema }) =>
          strict === true &&
          schemasIn(schema).some((inner) =>
            Object.keys(unsupportedKeywords).some((keyword) => inner[keyword] !== undefined),
          ),
      ),
    says: "tools.0.custom: For 'integer' type, property 'minimum' is not supported",
    source: sdkSource,
    violates: {
      model: "claude-sonnet-4-5",
      body: askClaude({
        tools: [
          claudeTool({ strict: true, input_schema: schemaOf({ type: "integer", minimum: 1 }) }),
        ],
      }),
    },
  },
]);

/** What Anthropic refuses. */
export const anthropicRules: readonly VendorRule[] = [
  ...sampling,
  ...thinkingRules,
  ...thoughtRules,
  ...turnRules,
  ...toolRules,
  ...schemaRules,
];

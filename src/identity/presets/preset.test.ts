import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { applyPreset, type Preset, type PresetConfig, usePreset } from "./preset.ts";
import { PresetDirectory } from "./preset-directory.ts";
import { anthropicMessages } from "../../inference/dialects/anthropic-messages/index.ts";
import { openaiChat } from "../../inference/dialects/openai-chat/index.ts";
import { openaiResponses } from "../../inference/dialects/openai-responses/index.ts";
import type { JsonFields } from "../../platform/kernel/json/json-members.ts";

const dialects = {
  "openai-chat": openaiChat,
  "anthropic-messages": anthropicMessages,
  "openai-responses": openaiResponses,
};
type PresetDialect = keyof typeof dialects;

const presetOf = (config: PresetConfig, slug = "p"): Preset => ({
  id: "prs_1",
  workspaceId: "ws",
  slug,
  name: "n",
  description: null,
  config,
  version: 1,
  createdAtMs: 1,
  updatedAtMs: 1,
});

/** A request as a client writes it for each dialect, with nothing set that a preset could give. */
const bare: Record<PresetDialect, JsonFields> = {
  "openai-chat": { model: "@preset/p", messages: [{ role: "user", content: "Hi" }] },
  "anthropic-messages": { model: "@preset/p", messages: [{ role: "user", content: "Hi" }] },
  "openai-responses": { model: "@preset/p", input: "Hi" },
};

/** The members that a preset changes of a request, parsed; the model is checked and left out. */
function changed(dialect: PresetDialect, config: PresetConfig, own: JsonFields = {}): JsonFields {
  const body = { ...bare[dialect], ...own };
  const edits = applyPreset(presetOf({ model: "acme/large", ...config }), {
    presetFields: dialects[dialect].presetFields,
    text: JSON.stringify(body),
    body,
  });
  const { model, ...rest } = Object.fromEntries(
    [...edits].map(([member, text]) => [member, JSON.parse(text ?? "null") as unknown]),
  );
  expect(model).toBe("acme/large");
  return rest;
}

const look = {
  type: "function",
  function: { name: "look", description: "d", parameters: { type: "object" }, strict: true },
};
const messagesLook = {
  name: "look",
  description: "d",
  input_schema: { type: "object" },
  strict: true,
};
const penalties = { frequency_penalty: 1, presence_penalty: 2 };
const anyJson = { type: "json_object" };
const routing: JsonFields = {
  provider: { sort: "price", require_params: ["tools"], min_context: 9 },
};
const schema = { type: "object", properties: {} };
const asSchema = { type: "json_schema", json_schema: { name: "s", schema, strict: true } };

/**
 * What a setting becomes in chat, Messages and Responses; {} where a dialect has no place for it.
 */
const table: [PresetConfig, JsonFields, JsonFields, JsonFields][] = [
  [{}, {}, {}, {}],
  [{ models: ["a", "b"] }, { models: ["a", "b"] }, { models: ["a", "b"] }, { models: ["a", "b"] }],
  [{ temperature: 0.4 }, { temperature: 0.4 }, { temperature: 0.4 }, { temperature: 0.4 }],
  [{ temperature: 1.7 }, { temperature: 1.7 }, { temperature: 1 }, { temperature: 1.7 }],
  [
    { top_p: 0.5, top_k: 3 },
    { top_p: 0.5, top_k: 3 },
    { top_p: 0.5, top_k: 3 },
    { top_p: 0.5, top_k: 3 },
  ],
  [{ max_tokens: 9 }, { max_tokens: 9 }, { max_tokens: 9 }, { max_output_tokens: 9 }],
  [
    { max_tokens: 9, max_completion_tokens: 8 },
    { max_completion_tokens: 8 },
    { max_tokens: 8 },
    { max_output_tokens: 8 },
  ],
  [penalties, penalties, {}, penalties],
  [
    { repetition_penalty: 1.2, seed: 5 },
    { repetition_penalty: 1.2, seed: 5 },
    {},
    { repetition_penalty: 1.2, seed: 5 },
  ],
  [{ stop: "END" }, { stop: "END" }, { stop_sequences: ["END"] }, {}],
  [{ stop: ["A", "B"] }, { stop: ["A", "B"] }, { stop_sequences: ["A", "B"] }, {}],
  [{ response_format: anyJson }, { response_format: anyJson }, {}, { text: { format: anyJson } }],
  [
    { response_format: asSchema },
    { response_format: asSchema },
    { output_config: { format: { type: "json_schema", schema } } },
    { text: { format: { type: "json_schema", name: "s", schema, strict: true } } },
  ],
  [
    { tools: [look], tool_choice: "required" },
    { tools: [look], tool_choice: "required" },
    { tools: [messagesLook], tool_choice: { type: "any" } },
    { tools: [{ type: "function", ...look.function }], tool_choice: "required" },
  ],
  [
    { tools: [look], tool_choice: { type: "function", function: { name: "look" } } },
    { tools: [look], tool_choice: { type: "function", function: { name: "look" } } },
    { tools: [messagesLook], tool_choice: { type: "tool", name: "look" } },
    {
      tools: [{ type: "function", ...look.function }],
      tool_choice: { type: "function", name: "look" },
    },
  ],
  [{ tool_choice: "auto" }, {}, {}, {}],
  [
    { reasoning: { effort: "high" } },
    { reasoning_effort: "high" },
    { output_config: { effort: "high" } },
    { reasoning: { effort: "high" } },
  ],
  [
    { reasoning: { effort: "none" } },
    { reasoning_effort: "none" },
    { thinking: { type: "disabled" } },
    { reasoning: { enabled: false } },
  ],
  [
    { reasoning: { enabled: false } },
    { reasoning_effort: "none" },
    { thinking: { type: "disabled" } },
    { reasoning: { enabled: false } },
  ],
  [
    { reasoning: { max_tokens: 2048, exclude: true } },
    { reasoning: { max_tokens: 2048, exclude: true } },
    { thinking: { type: "enabled", budget_tokens: 2048 } },
    { reasoning: { max_tokens: 2048, exclude: true } },
  ],
  [{ stream_options: { include_usage: true } }, {}, {}, {}],
  [
    { provider: { sort: "price" }, require_params: ["tools"], min_context: 9 },
    routing,
    routing,
    routing,
  ],
];

test.each(table)("sets the fields of each dialect for %j", (config, chat, messages, responses) => {
  expect(changed("openai-chat", config)).toEqual(chat);
  expect(changed("anthropic-messages", config)).toEqual(messages);
  expect(changed("openai-responses", config)).toEqual(responses);
});

// Anthropic answers 400 unless the budget is below the output cap, and to a budget below 1,024.
test.each([
  [5_000, 2_048],
  [2_000, 1_600],
  [1_200, 1_024],
  [1_024, undefined],
  [100, undefined],
])("on Messages, an output cap of %d leaves a budget of %p", (maxTokens, budget) => {
  const thinking =
    budget === undefined ? {} : { thinking: { type: "enabled", budget_tokens: budget } };
  const reasoning = { max_tokens: 2_048 };
  const cap = { max_tokens: maxTokens };
  expect(changed("anthropic-messages", { reasoning }, cap)).toEqual(thinking);
  expect(changed("anthropic-messages", { reasoning, ...cap })).toEqual({ ...cap, ...thinking });
});

describe("request values take precedence over the preset", () => {
  const everything: PresetConfig = {
    models: ["x"],
    temperature: 0.1,
    max_tokens: 1,
    top_p: 0.1,
    top_k: 1,
    frequency_penalty: 1,
    presence_penalty: 1,
    repetition_penalty: 1,
    stop: "S",
    seed: 1,
    response_format: asSchema,
    tools: [look],
    tool_choice: { type: "function", function: { name: "look" } },
    reasoning: { effort: "low" },
    stream_options: { include_usage: true },
    system: "Preset.",
  };

  test.each<[PresetDialect, JsonFields]>([
    [
      "openai-chat",
      {
        models: ["y"],
        temperature: 1,
        max_completion_tokens: 2,
        top_p: 1,
        top_k: 2,
        frequency_penalty: 0,
        presence_penalty: 0,
        repetition_penalty: 2,
        stop: [],
        seed: 0,
        response_format: { type: "text" },
        tools: [],
        reasoning: { enabled: true },
        stream: true,
        stream_options: {},
        messages: [
          { role: "user", content: "Hi" },
          { role: "developer", content: "Own." },
        ],
      },
    ],
    [
      "anthropic-messages",
      {
        models: [],
        temperature: 0,
        max_tokens: 2,
        top_p: 1,
        top_k: 2,
        stop_sequences: [],
        tools: [{ name: "own" }],
        system: "Own.",
        thinking: { type: "adaptive" },
        output_config: { format: { type: "json_schema", schema: {} } },
      },
    ],
    [
      "openai-responses",
      {
        models: ["y"],
        temperature: 1,
        max_output_tokens: 2,
        top_p: 1,
        top_k: 2,
        frequency_penalty: 0,
        presence_penalty: 0,
        repetition_penalty: 2,
        seed: 0,
        text: { format: { type: "text" } },
        tools: [],
        reasoning: { effort: "high" },
        instructions: "Own.",
      },
    ],
  ])("for every field in %s", (dialect, own) => {
    expect(changed(dialect, everything, own)).toEqual({});
  });

  test.each<[PresetDialect, JsonFields, JsonFields]>([
    ["openai-chat", { temperature: null, reasoning: null, tools: null }, { temperature: 0.1 }],
    [
      "anthropic-messages",
      { temperature: null, thinking: null, system: null },
      { temperature: 0.1 },
    ],
    ["openai-responses", { temperature: null, reasoning: null, text: null }, { temperature: 0.1 }],
  ])("except null values in %s", (dialect, own, expected) => {
    expect(changed(dialect, { temperature: 0.1 }, own)).toEqual(expected);
  });

  test("field by field in nested objects", () => {
    const reasoning = { effort: "low", exclude: true };
    expect(changed("openai-chat", { reasoning }, { reasoning_effort: "high" })).toEqual({
      reasoning: { exclude: true },
    });
    expect(changed("openai-chat", { reasoning }, { reasoning: { summary: "auto" } })).toEqual({
      reasoning_effort: "low",
      reasoning: { summary: "auto", exclude: true },
    });
    expect(changed("openai-responses", { reasoning }, { reasoning: { effort: "high" } })).toEqual({
      reasoning: { effort: "high", exclude: true },
    });
    expect(
      changed("openai-responses", { response_format: asSchema }, { text: { verbosity: "low" } }),
    ).toMatchObject({ text: { verbosity: "low", format: { name: "s" } } });
    expect(
      changed(
        "anthropic-messages",
        { reasoning, response_format: asSchema },
        { output_config: { effort: "max" } },
      ),
    ).toEqual({ output_config: { effort: "max", format: { type: "json_schema", schema } } });
  });

  test("tool_choice of the preset applies to the request's tools only if it names no tool", () => {
    const own = { tools: [{ type: "function", function: { name: "own" } }] };
    expect(changed("openai-chat", { tools: [look], tool_choice: "required" }, own)).toEqual({
      tool_choice: "required",
    });
    expect(
      changed(
        "openai-chat",
        { tools: [look], tool_choice: { type: "function", function: { name: "look" } } },
        own,
      ),
    ).toEqual({});
    expect(
      changed("openai-chat", { tools: [look], tool_choice: "required" }, { tools: [] }),
    ).toEqual({});
  });

  test("stream_options of the preset apply to streams only", () => {
    const config = { stream_options: { include_usage: true } };
    expect(changed("openai-chat", config, { stream: true })).toEqual(config);
  });
});

describe("the preset's system message", () => {
  const messages = [{ role: "user", content: "Hi" }];

  test.each<[PresetDialect, JsonFields, JsonFields]>([
    ["openai-chat", {}, { messages: [{ role: "system", content: "Be kind." }, ...messages] }],
    ["openai-chat", { messages: [...messages, { role: "system", content: "Own." }] }, {}],
    ["openai-chat", { messages: [{ role: "developer", content: "Own." }, ...messages] }, {}],
    ["openai-chat", { messages: "wrong" }, {}],
    ["openai-chat", { messages: [] }, {}],
    ["anthropic-messages", {}, { system: "Be kind." }],
    ["anthropic-messages", { system: "" }, { system: "Be kind." }],
    ["anthropic-messages", { system: [{ type: "text", text: "Own." }] }, {}],
    ["anthropic-messages", { messages: [{ role: "system", content: "Own." }, ...messages] }, {}],
    ["openai-responses", {}, { instructions: "Be kind." }],
    ["openai-responses", { instructions: "Own." }, {}],
    [
      "openai-responses",
      {
        input: [
          { role: "developer", content: "Own." },
          { role: "user", content: "Hi" },
        ],
      },
      {},
    ],
    [
      "openai-responses",
      { input: [{ role: "user", content: "Hi" }] },
      { instructions: "Be kind." },
    ],
  ])("in %s with the request %j", (dialect, own, expected) => {
    expect(changed(dialect, { system: "Be kind." }, own)).toEqual(expected);
  });
});

describe("the preset's model", () => {
  const modelOf = (config: PresetConfig, own: JsonFields = {}): unknown => {
    const body = { ...bare["openai-chat"], ...own };
    return JSON.parse(
      applyPreset(presetOf(config), {
        presetFields: openaiChat.presetFields,
        text: JSON.stringify(body),
        body,
      }).get("model") ?? "",
    );
  };

  test.each<[PresetConfig, JsonFields, string]>([
    [{ model: "a/b", models: ["c/d"] }, {}, "a/b"],
    [{ model: "a/b" }, { models: ["c/d"] }, "a/b"],
    [{ models: ["c/d", "e/f"] }, {}, "c/d"],
    [{ models: ["c/d"] }, { models: ["g/h"] }, "g/h"],
    [{ model: "a/b" }, { model: "@preset/p:floor" }, "a/b:floor"],
    [{ model: "a/b:nitro" }, { model: "@preset/p:floor" }, "a/b:floor"],
    [{ model: "a/b:free" }, { model: "@preset/p:floor" }, "a/b:free:floor"],
    [{ model: "a/b:nitro" }, {}, "a/b:nitro"],
    [{ model: "service/auto" }, { model: "@preset/p[500k]" }, "service/auto[500k]"],
  ])("%j, requested as %j, resolves to %s", (config, own, model) => {
    expect(modelOf(config, own)).toBe(model);
  });

  test("is required if the request names none", () => {
    expect(() => modelOf({ temperature: 1 })).toThrow(
      expect.objectContaining({ code: "bad_request", param: "model" }),
    );
  });
});

describe("a request that names a preset", () => {
  const presets = new PresetDirectory();
  presets.put(presetOf({ model: "acme/large", system: "S", temperature: 0.5 }, "mine"));
  const use = (text: string, workspaceId = "ws") =>
    usePreset(presets, {
      workspaceId,
      presetFields: openaiChat.presetFields,
      text,
      body: JSON.parse(text) as JsonFields,
    });

  test("keeps the bytes of all fields that the preset does not set", () => {
    const text =
      '{ "seed" : 12345678901234567890, "model":"@preset/mine" , "messages": [ {"role":"user","content":"\\u0041",  "n":1.0} ]}';
    const used = use(text);
    expect(used.text).toBe(
      '{ "seed" : 12345678901234567890, "model":"acme/large" , ' +
        '"messages": [{"role":"system","content":"S"}, {"role":"user","content":"\\u0041",  "n":1.0} ],"temperature":0.5}',
    );
    expect(used.body).toEqual(JSON.parse(used.text) as JsonFields);
  });

  test("uses the last of two fields with the same name, as JSON.parse does", () => {
    const used = use(
      '{"model":"@preset/mine","messages":[],"messages":[{"role":"user","content":"last"}]}',
    );
    expect(used.body).toEqual(JSON.parse(used.text) as JsonFields);
    expect(used.body["messages"]).toHaveLength(2);
  });

  test("is unchanged if it names a model and no preset", () => {
    const text = '{"model":"acme/large","messages":[]}';
    const used = use(text);
    expect(used.text).toBe(text);
    expect(used.body).toEqual({ model: "acme/large", messages: [] });
  });

  test.each(["@preset/mine", "@preset/MINE", "@preset/mine:floor"])("finds it by %s", (model) => {
    expect(use(JSON.stringify({ model, messages: [] })).body["temperature"]).toBe(0.5);
  });

  test.each([
    ["@preset/none", "ws"],
    ["@preset/", "ws"],
    ["@preset/ ", "ws"],
    ["@preset/mine", "ws_other"],
  ])("returns 404 for %j in the workspace %s", (model, workspaceId) => {
    expect(() => use(JSON.stringify({ model, messages: [] }), workspaceId)).toThrow(GatewayError);
    expect(() => use(JSON.stringify({ model, messages: [] }), workspaceId)).toThrow(
      expect.objectContaining({ code: "not_found", param: "model" }),
    );
  });
});

import {
  all,
  at,
  fieldsOf,
  functionsOf,
  hasForms,
  hasOptional,
  isOfOlderDraft,
  isOpen,
  isOther,
  isSet,
  lacksItems,
  listOf,
  not,
  schemasIn,
} from "../reading.ts";
import { type Fields, rulesOf, type VendorRequest, type VendorRule } from "../rule.ts";
import { chatTool, eitherOf, olderSchema, responsesTool, schemaOf } from "../samples.ts";
import {
  openaiError as envelope,
  isOff as offOf,
  reasoningGuide,
  reasoningModels,
  unsupported,
  withoutReasoning,
} from "./openai-models.ts";

const itemsOf = ({ body }: VendorRequest): Fields[] => listOf(body["input"]);
const responsesReference = "openai 7.55.0, resources/responses (2026-11-21)";
const hello = { input: [{ role: "user", content: "Hi" }] };
const call = { type: "function_call", call_id: "call_1", name: "look_up", arguments: "{}" };
const output = { type: "function_call_output", call_id: "call_1", output: "sunny" };

/** The beginning of seals that another organisation, or another region of Azure, has made. */
const otherAccount = "gAAAAABother";
const isOthers = ({ type, encrypted_content: seal }: Fields): boolean =>
  (type === "reasoning" || type === "compaction") && String(seal).startsWith(otherAccount);

/** The beginning of ids of searches that a model made after it had reasoned. */
const reasonedSearch = "ws_reasoned";

/** What OpenAI refuses on /responses. */
export const openaiResponsesRules: readonly VendorRule[] = rulesOf(
  { vendor: "openai", endpoint: "responses", body: envelope },
  [
    ...(["temperature", "top_p"] as const).map((field) => ({
      id: `responses-${field.replace("_", "-")}`,
      models: reasoningModels,
      when: all(isOther(field, 1), not(offOf)),
      says: unsupported(field),
      param: field,
      source: reasoningGuide,
      violates: { model: "gpt-5.5", body: { ...hello, [field]: 0.5 } },
    })),
    {
      id: "responses-effort-none",
      models: /^(?:o\d|gpt-5(?!\.)|gpt-6(?:\.\d+)?-astra)/,
      when: ({ body }) => fieldsOf(body["reasoning"])["effort"] === "none",
      says: ({ model }) =>
        `Unsupported value: 'none' is not supported with the '${model}' model. ` +
        `Supported values are: ${model.startsWith("gpt-5") ? "'minimal', " : ""}'low', 'medium', and 'high'.`,
      param: "reasoning.effort",
      code: "unsupported_value",
      source:
        "github.com/openai/openai-agents-python/issues/2089 (2025-11-17), " +
        "UKGovernmentBEIS/inspect_ai/pull/5254 (2026-09-04)",
      violates: { model: "gpt-5", body: { ...hello, reasoning: { effort: "none" } } },
    },
    {
      id: "responses-search-with-least-effort",
      when: ({ body }) =>
        fieldsOf(body["reasoning"])["effort"] === "minimal" &&
        listOf(body["tools"]).some(({ type }) => String(type).startsWith("web_search")),
      says: "The following tools cannot be used with reasoning.effort 'minimal': web_search.",
      param: "tools",
      source:
        "github.com/openai/codex/issues/3559 (2025-09-13), openai/codex/pull/5072 (2025-10-10)",
      violates: {
        model: "gpt-5",
        body: { ...hello, reasoning: { effort: "minimal" }, tools: [{ type: "web_search" }] },
      },
    },
    {
      id: "responses-search-of-older-models",
      models: /^(?:o1|o3-mini)/,
      when: ({ body }) =>
        listOf(body["tools"]).some(({ type }) => String(type).startsWith("web_search")),
      says: ({ model }) => `Tool 'web_search' is not supported with ${model}.`,
      param: "tools",
      source:
        "github.com/BerriAI/litellm/pull/23275 (2026-03-10), pydantic/genai-prices/pull/630 (2026-08-27)",
      violates: { model: "o3-mini", body: { ...hello, tools: [{ type: "web_search" }] } },
    },
    {
      id: "responses-search-in-json-mode",
      when: ({ body }) =>
        at(body, "text.format.type") === "json_object" &&
        listOf(body["tools"]).some(({ type }) => String(type).startsWith("web_search")),
      says: "Web Search cannot be used with JSON mode.",
      param: "text.format",
      source:
        "reports of applications in public repositories, each with the vendor's words (2026-11)",
      violates: {
        model: "gpt-5.4-mini",
        body: {
          input: [{ role: "user", content: "Answer in JSON." }],
          tools: [{ type: "web_search" }],
          text: { format: { type: "json_object" } },
        },
      },
    },
    ...(
      [
        ["stop", "END"],
        ["frequency_penalty", 0.5],
        ["seed", 1],
        ["n", 2],
        ["messages", []],
        ["max_tokens", 9],
        ["reasoning_effort", "low"],
      ] as const
    ).map(([field, value]) => ({
      id: `responses-unknown-${field.replace("_", "-")}`,
      when: isSet(field),
      says: `Unknown parameter: '${field}'.`,
      param: field,
      code: "unknown_parameter",
      source: responsesReference,
      violates: { model: "gpt-4.1", body: { ...hello, [field]: value } },
    })),
    {
      id: "responses-top-level-forms",
      when: (request) => functionsOf(request).some(({ parameters }) => hasForms(parameters)),
      says:
        "Invalid schema for function 'look_up': schema must have type 'object' and not have " +
        "'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
      param: "tools[0].parameters",
      code: "invalid_function_parameters",
      source:
        "github.com/langchain-ai/langchainjs/issues/9804 (2026-01-14), " +
        "github.com/goruck/home-generative-agent/pull/545 (2026-08-12)",
      violates: {
        model: "gpt-4.1",
        body: { ...hello, tools: [responsesTool({ parameters: eitherOf, strict: false })] },
      },
    },
    {
      id: "responses-older-schema",
      when: (request) =>
        functionsOf(request).some(
          ({ parameters }) => isOfOlderDraft(parameters) || lacksItems(parameters),
        ),
      says: "Invalid schema for function 'look_up': In context=('properties', 'names'), array schema missing items.",
      param: "tools[0].parameters",
      code: "invalid_function_parameters",
      source:
        "github.com/ogx-ai/ogx/pull/3602 (2025-09-29), github.com/heypinchy/pinchy/pull/380 (2026-05-18)",
      violates: {
        model: "gpt-4.1",
        body: { ...hello, tools: [responsesTool({ parameters: olderSchema, strict: false })] },
      },
    },
    {
      id: "responses-small-cap",
      when: ({ body }) =>
        typeof body["max_output_tokens"] === "number" && body["max_output_tokens"] < 16,
      says: "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.",
      param: "max_output_tokens",
      code: "integer_below_min_value",
      source: "references of the three dialects (2026-11-21)",
      violates: { model: "gpt-5.5", body: { ...hello, max_output_tokens: 5 } },
    },
    {
      id: "responses-seals-without-reasoning",
      models: withoutReasoning,
      when: ({ body }) =>
        Array.isArray(body["include"]) && body["include"].includes("reasoning.encrypted_content"),
      says: "Encrypted content is not supported with this model.",
      param: "include",
      source: "developers.openai.com/api/docs/guides/reasoning (2026-11)",
      violates: {
        model: "gpt-4.1",
        body: { ...hello, include: ["reasoning.encrypted_content"] },
      },
    },
    {
      id: "responses-effort-without-reasoning",
      models: withoutReasoning,
      when: isSet("reasoning.effort"),
      says: unsupported("reasoning.effort"),
      param: "reasoning.effort",
      code: "unsupported_parameter",
      source: reasoningGuide,
      violates: { model: "gpt-4.1", body: { ...hello, reasoning: { effort: "low" } } },
    },
    {
      id: "responses-call-without-output",
      when: (request) =>
        itemsOf(request).some(
          ({ type, call_id: id }) =>
            type === "function_call" &&
            !itemsOf(request).some(
              (item) => item["type"] === "function_call_output" && item["call_id"] === id,
            ),
        ),
      says: "No tool output found for function call call_1.",
      param: "input",
      source: "cai#157, litellm#16525 (2026-11-21)",
      violates: { model: "gpt-5.5", body: { input: [...hello.input, call] } },
    },
    {
      id: "responses-output-without-call",
      when: (request) =>
        itemsOf(request).some(
          ({ type, call_id: id }) =>
            type === "function_call_output" &&
            !itemsOf(request).some(
              (item) => item["type"] === "function_call" && item["call_id"] === id,
            ),
        ),
      says: "No tool call found for function call output with call_id call_1.",
      param: "input",
      source: "open-webui#29630 (2026-11-21)",
      violates: { model: "gpt-5.5", body: { input: [...hello.input, output] } },
    },
    {
      id: "responses-call-id-length",
      when: (request) => itemsOf(request).some(({ call_id: id }) => String(id ?? "").length > 64),
      says: "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64.",
      param: "input[1].call_id",
      code: "string_above_max_length",
      source: "ClawRouter#17, nanobot PR#4356, bifrost#5097 (2026-11-21)",
      violates: {
        model: "gpt-5.5",
        body: {
          input: [
            ...hello.input,
            { ...call, call_id: "c".repeat(65) },
            { ...output, call_id: "c".repeat(65) },
          ],
        },
      },
    },
    {
      id: "responses-item-id",
      when: (request) =>
        itemsOf(request).some(
          ({ type, id }) => id !== undefined && type === "function_call" && !/^fc/.test(String(id)),
        ),
      says: "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.",
      param: "input[1].id",
      code: "invalid_value",
      source: "openai 7.55.0, resources (2026-11-21)",
      violates: {
        model: "gpt-5.5",
        body: { input: [...hello.input, { ...call, id: "call_1" }, output] },
      },
    },
    {
      id: "responses-other-account",
      when: (request) => itemsOf(request).some(isOthers),
      says: (request) => {
        const seal = String(itemsOf(request).find(isOthers)?.["encrypted_content"]);
        return `The encrypted content ${seal.slice(0, 4)}...${seal.slice(-4)} could not be verified.`;
      },
      code: "invalid_encrypted_content",
      source:
        "github.com/openai/codex/issues/8119, .../8159, github.com/Kilo-Org/kilo/pull/110 (2025-12-17), " +
        "of compaction github.com/Wei-Shaw/sub2api/pull/5084 (2026-07-30)",
      violates: {
        model: "gpt-5.5",
        body: {
          input: [
            ...hello.input,
            { type: "reasoning", id: "rs_1", summary: [], encrypted_content: `${otherAccount}1==` },
            { ...call, id: "fc_1" },
            output,
          ],
        },
      },
    },
    {
      id: "responses-reasoning-alone",
      when: (request) =>
        itemsOf(request).some(
          ({ type }, index, items) =>
            type === "reasoning" &&
            ![
              "message",
              "function_call",
              "custom_tool_call",
              "web_search_call",
              "reasoning",
            ].includes(String(items[index + 1]?.["type"] ?? "")),
        ),
      says: "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
      param: "input",
      source: "github.com/openai/openai-python/issues, `required following item` (2025-2026)",
      violates: {
        model: "gpt-5.5",
        body: {
          input: [
            { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x" },
            { role: "user", content: "Hi" },
          ],
        },
      },
    },
    {
      id: "responses-search-without-reasoning",
      when: (request) =>
        itemsOf(request).some(
          ({ type, id }, index, items) =>
            type === "web_search_call" &&
            String(id).startsWith(reasonedSearch) &&
            items[index - 1]?.["type"] !== "reasoning",
        ),
      says: `Item '${reasonedSearch}1' of type 'web_search_call' was provided without its required 'reasoning' item: 'rs_1'.`,
      param: "input",
      source: "reports of agents in public repositories, with the vendor's words (2026-09-28)",
      violates: {
        model: "gpt-6-astra",
        body: {
          input: [
            ...hello.input,
            {
              type: "web_search_call",
              id: `${reasonedSearch}1`,
              status: "completed",
              action: { type: "search", query: "q" },
            },
            { type: "message", role: "assistant", content: "So." },
          ],
        },
      },
    },
    {
      id: "responses-nested-tool",
      when: ({ body }) =>
        listOf(body["tools"]).some(({ type, name }) => type === "function" && name === undefined),
      says: "Missing required parameter: 'tools[0].name'.",
      param: "tools[0].name",
      code: "missing_required_parameter",
      source: responsesReference,
      violates: { model: "gpt-5.5", body: { ...hello, tools: [chatTool()] } },
    },
    {
      id: "responses-strict-optional-property",
      when: ({ body }) =>
        listOf(body["tools"]).some(
          ({ type, strict, parameters }) =>
            type === "function" &&
            strict === true &&
            schemasIn(parameters).some((schema) => hasOptional(schema) || isOpen(schema)),
        ),
      says: "Invalid schema for function 'look_up': 'required' is required to be an array including every key in properties.",
      param: "tools[0].parameters",
      code: "invalid_function_parameters",
      source: "developers.openai.com/api/docs/guides/structured-outputs (2026-11)",
      violates: {
        model: "gpt-5.5",
        body: {
          ...hello,
          tools: [
            responsesTool({
              strict: true,
              parameters: schemaOf({ type: "string" }, { required: [] }),
            }),
          ],
        },
      },
    },
    {
      id: "responses-too-many-pairs-of-metadata",
      when: ({ body }) => Object.keys(fieldsOf(body["metadata"])).length > 16,
      says: "Invalid 'metadata': too many properties. Expected an object with at most 16 properties.",
      param: "metadata",
      code: "object_above_max_properties",
      source: responsesReference,
      violates: {
        model: "gpt-5.5",
        body: {
          ...hello,
          metadata: Object.fromEntries(
            Array.from({ length: 17 }, (_, index) => [`k${index}`, "v"]),
          ),
        },
      },
    },
  ],
);

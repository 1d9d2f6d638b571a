import { z } from "zod";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import {
  namedAsWhole,
  requestCheck,
  answerSchemaShape,
  cacheMarkers,
  callArguments,
  choiceProblem,
  choiceWord,
  functionShape,
  gatewayFieldNames,
  gatewayShape,
  identityShape,
  integer,
  modelField,
  open,
  otherType,
  reasoningShape,
  samplingShape,
  sound,
  topLogprobs,
} from "../shared/request-check.ts";
import { asArray, asObject, withoutUndefined } from "../shared/wire-fields.ts";

const textPart = z.looseObject({ type: z.literal("text"), text: z.string(), ...cacheMarkers });

const imagePart = z.looseObject({
  type: z.literal("image_url"),
  image_url: z.union([
    z.string(),
    z.looseObject({
      url: z.string(),
      detail: z
        .string()
        .nullish()
        .describe("auto, low or high; other values if the model supports them."),
    }),
  ]),
  ...cacheMarkers,
});

const filePart = z.looseObject({
  type: z.literal("file"),
  file: z
    .looseObject({
      file_data: z.string().nullish(),
      file_id: z.string().nullish(),
      filename: z.string().nullish(),
    })
    .refine(({ file_data: data, file_id: id }) => typeof (data ?? id) === "string", {
      error: "needs file_data or file_id.",
    })
    .meta({
      anyOf: ["file_data", "file_id"].map((name) => ({
        required: [name],
        properties: { [name]: { type: "string" } },
      })),
    }),
  ...cacheMarkers,
});

const contentPart = z
  .union([
    z.string(),
    textPart,
    imagePart,
    z.looseObject({ type: z.literal("input_audio"), input_audio: sound, ...cacheMarkers }),
    filePart,
    z.looseObject({ type: z.literal("refusal"), refusal: z.string() }),
    otherType(["text", "image_url", "input_audio", "file", "refusal"]),
    z.array(z.unknown()).describe("Forwarded to providers of the same dialect only."),
  ])
  .describe("A part of a message. A string is a text part.");

const content = z.union([z.string(), z.array(contentPart), z.null()], {
  error: "must be a string or an array of content parts.",
});

const toolCall = z.union([
  z.looseObject({
    id: z.string(),
    type: z.literal("custom"),
    custom: z.looseObject({ name: z.string(), input: z.string().nullish() }),
  }),
  z.looseObject({
    id: z.string(),
    type: z
      .string()
      .refine((type) => type !== "custom")
      .meta({ not: { enum: ["custom"] } })
      .nullish()
      .describe("function; other types if the provider supports them."),
    function: z.looseObject(
      { name: z.string(), arguments: callArguments },
      { error: 'is required: {"name": "...", "arguments": "{}"}.' },
    ),
  }),
]);

const assistantMessage = z.looseObject({
  role: z.literal("assistant"),
  // Agents replay turns without content: calls alone, refusals, or turns that were cut off.
  content: content.optional(),
  name: z.string().nullish(),
  tool_calls: z.array(toolCall).nullish(),
  refusal: z.string().nullish(),
  audio: z.looseObject({ id: z.string() }).nullish(),
  function_call: z
    .looseObject({ name: z.string(), arguments: callArguments })
    .nullish()
    .describe("Former name of tool_calls."),
  reasoning_content: z
    .string()
    .nullish()
    .describe("Earlier reasoning, forwarded to providers that require it."),
  reasoning: z.string().nullish(),
  reasoning_details: z.array(open).nullish(),
});

const message = z
  .union(
    [
      assistantMessage,
      z.looseObject({
        role: z.literal("tool"),
        content,
        tool_call_id: z.string().describe("Id of the answered tool call."),
        name: z.string().nullish(),
      }),
      z.looseObject({ role: z.literal("function"), content, name: z.string() }),
      z.looseObject({
        role: z.enum(["developer", "system", "user"], {
          error: "must be one of developer, system, user, assistant, tool, function.",
        }),
        content,
        name: z.string().nullish(),
      }),
    ],
    { error: "must be an object with a role and content." },
  )
  .describe("A message. Unlisted fields are forwarded to providers of the same dialect only.");

const toolProblem = { error: "is required: the tool's name and what it takes." };

const grammar = z.looseObject(
  { syntax: z.string(), definition: z.string() },
  { error: 'is required: {"syntax": "lark", "definition": "..."}.' },
);

const tool = z.union(
  [
    z.looseObject({
      type: z.literal("function"),
      function: z.looseObject(functionShape, toolProblem),
      ...cacheMarkers,
    }),
    z.looseObject({
      type: z.literal("custom"),
      custom: z.looseObject(
        {
          name: z.string().min(1),
          description: z.string().nullish(),
          format: z
            .union([z.looseObject({ type: z.literal("grammar"), grammar }), otherType(["grammar"])])
            .nullish(),
        },
        toolProblem,
      ),
      ...cacheMarkers,
    }),
    otherType(["function", "custom"]),
  ],
  { error: "must be an object with a type." },
);

const named = z.looseObject({ name: z.string() }, { error: 'is required: {"name": "..."}.' });

const toolChoice = z.union(
  [
    choiceWord,
    z.looseObject({ type: z.literal("function"), function: named }),
    z.looseObject({ type: z.literal("custom"), custom: named }),
    z.looseObject({
      type: z.literal("allowed_tools"),
      allowed_tools: z.looseObject(
        { mode: z.enum(["auto", "required"]), tools: z.array(z.looseObject({ type: z.string() })) },
        { error: 'is required: {"mode": "auto", "tools": [...]}.' },
      ),
    }),
    otherType(["function", "custom", "allowed_tools"]),
  ],
  { error: choiceProblem },
);

const responseFormat = z
  .union([
    z.looseObject({
      type: z.literal("json_schema"),
      json_schema: z.looseObject(answerSchemaShape).nullish(),
    }),
    otherType(["json_schema"]),
  ])
  .register(namedAsWhole, {
    problem: "must be an object with a type: text, json_object or json_schema.",
  });

const count = integer(1).nullish();

/**
 * The body of `POST /chat/completions`: the contract's fields, OpenAI's reference (openai 7.55) and
 * the extensions of compatible servers. Null means absent, except for `model` and `messages`.
 * Undescribed fields are passed on to upstreams of the same dialect.
 */
export const chatRequestSchema = z.looseObject({
  model: modelField,
  messages: z
    .array(message, {
      error: 'is required: send at least one message such as {"role": "user", "content": "Hello"}.',
    })
    .min(1),
  ...gatewayShape,
  trace: z
    .looseObject({
      trace_id: z.string().nullish(),
      trace_name: z.string().nullish(),
      span_name: z.string().nullish(),
      generation_name: z.string().nullish(),
      parent_span_id: z.string().nullish(),
    })
    .nullish(),
  stream: z.boolean().nullish(),
  stream_options: z
    .looseObject({
      include_usage: z.boolean().nullish(),
      include_obfuscation: z.boolean().nullish(),
    })
    .nullish(),
  ...samplingShape,
  logit_bias: z.record(z.string(), z.number()).nullish(),
  n: integer(1, 128).nullish(),
  stop: z
    .union([z.string(), z.array(z.string()).max(4)], {
      error: "must be a string or an array of at most 4 strings.",
    })
    .nullish(),
  max_completion_tokens: count,
  max_tokens: count.describe("Former name of max_completion_tokens."),
  logprobs: z.boolean().nullish(),
  top_logprobs: topLogprobs,
  tools: z
    .array(tool, {
      error: 'must be an array of tools such as {"type": "function", "function": {...}}.',
    })
    .nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  functions: z.array(z.looseObject(functionShape)).nullish().describe("Former name of tools."),
  function_call: z
    .union([z.enum(["none", "auto"]), z.looseObject({ name: z.string() })], {
      error: 'must be "none", "auto" or {"name": "..."}.',
    })
    .nullish()
    .describe("Former name of tool_choice."),
  response_format: responseFormat.nullish(),
  reasoning_effort: z
    .string()
    .nullish()
    .describe("none disables reasoning; the other levels depend on the model."),
  reasoning: z.looseObject(reasoningShape).nullish(),
  verbosity: z.string().nullish(),
  modalities: z.array(z.string()).nullish(),
  audio: z.looseObject({ format: z.string().nullish(), voice: z.unknown().optional() }).nullish(),
  prediction: z
    .looseObject({
      type: z.string(),
      content: z.union([z.string(), z.array(textPart)]).nullish(),
    })
    .nullish(),
  web_search_options: z
    .looseObject({
      search_context_size: z.string().nullish(),
      user_location: z.looseObject({ approximate: open.nullish() }).nullish(),
    })
    .nullish(),
  store: z.boolean().nullish(),
  ...identityShape,
});

/** Checks a chat request; see `requestCheck`. */
export const checkChatRequest = requestCheck(chatRequestSchema);

/**
 * Fields of OpenRouter that the gateway grants itself: `usage.include`, which has no effect there
 * either, and the older form of `reasoning.exclude`.
 */
export const openRouterGrants = ["usage", "include_reasoning"] as const;

/** Request fields that the canonical form names; all others are kept as extensions. */
export const chatRequestFields: ReadonlySet<string> = new Set([
  ...Object.keys(chatRequestSchema.shape),
  ...openRouterGrants,
]);

/** Request fields for the gateway, which are removed from every body that is sent upstream. */
export const chatGatewayFields = gatewayFieldNames;

/** Fields by which OpenRouter itself works on a request or an answer. */
export const openRouterExtras = ["route", "transforms", "plugins"] as const;

/** Returns whether a request asks not to see reasoning, in either of its two forms. */
export const hidesReasoning = ({
  reasoning,
  include_reasoning: included,
}: Readonly<Record<string, unknown>>): boolean =>
  ((Object(reasoning) as { exclude?: unknown }).exclude ?? included === false) === true;

/**
 * Returns a body whose functions, calls and choice of a function say that they are functions, and
 * whose custom tools are nested; undefined where nothing has to change. Clients of Mistral and of
 * Hugging Face leave the type out (mistralai 1.9 and huggingface_hub 0.33, as they sent it in
 * 2025-12), and Cursor writes its custom tool as for Responses (BerriAI/litellm#34029, 2026-07).
 */
export function withToolTypes(
  body: Readonly<Record<string, unknown>>,
): Record<string, unknown> | undefined {
  const { tools, tool_choice: choice, messages } = body;
  const typed = {
    tools: nestedList(typedList(tools)),
    tool_choice: isFlat(choice) ? nestedOne(choice) : isUntyped(choice) ? typedOne(choice) : choice,
    messages: typedMessages(messages),
  };
  if (typed.tools === tools && typed.tool_choice === choice && typed.messages === messages)
    return undefined;
  return Object.fromEntries(
    Object.entries({ ...body, ...typed }).filter(([field]) => field in body),
  );
}

const isUntyped = (value: unknown): value is JsonObject => {
  const object = asObject(value);
  return (
    object !== undefined &&
    (object.type ?? null) === null &&
    asObject(object.function) !== undefined
  );
};

const typedOne = (value: JsonObject): JsonObject => ({ ...value, type: "function" });

function typedList(list: unknown): unknown {
  const values = asArray(list);
  return values?.some(isUntyped) === true
    ? values.map((value): JsonValue => (isUntyped(value) ? typedOne(value) : value))
    : list;
}

/** Returns whether a custom tool, or the choice of one, has its members as Responses has them. */
const isFlat = (value: unknown): value is JsonObject => {
  const { type, name, custom } = asObject(value) ?? {};
  return type === "custom" && typeof name === "string" && custom === undefined;
};

const nestedOne = ({ type, name, description, format, ...rest }: JsonObject): JsonObject => ({
  type,
  ...rest,
  custom: withoutUndefined<JsonObject>({ name, description, format: nestedFormat(format) }),
});

/** Returns the format of a custom tool as chat has it, with its grammar nested. */
function nestedFormat(format: JsonValue | undefined): JsonValue | undefined {
  const { type, ...grammar } = asObject(format) ?? {};
  return type === "grammar" && !("grammar" in grammar) ? { type, grammar } : format;
}

function nestedList(list: unknown): unknown {
  const values = asArray(list);
  return values?.some(isFlat) === true
    ? values.map((value): JsonValue => (isFlat(value) ? nestedOne(value) : value))
    : list;
}

function typedMessages(list: unknown): unknown {
  const messages = asArray(list);
  if (messages?.some((message) => asArray(asObject(message)?.tool_calls)?.some(isUntyped)) !== true)
    return list;
  return messages.map((message) => {
    const { tool_calls: calls } = asObject(message) ?? {};
    const typed = typedList(calls);
    return typed === calls ? message : { ...asObject(message), tool_calls: typed };
  });
}

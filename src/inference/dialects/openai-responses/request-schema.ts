import { z } from "zod";
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
  type Fields,
} from "../shared/request-check.ts";
import { asObject, badRequest } from "../shared/wire-fields.ts";

/** Requires one of these members, which carries the content of a part. */
const anyOfMembers = (names: readonly string[]) =>
  names.map((name) => ({ required: [name], properties: { [name]: { type: "string" } } }));

const textTypes = ["input_text", "output_text", "text", "summary_text"] as const;

const textPart = z.looseObject({
  type: z.enum(textTypes),
  text: z.string(),
  annotations: z.array(open).nullish(),
  ...cacheMarkers,
});

const imagePart = z
  .looseObject({
    type: z.literal("input_image"),
    image_url: z.string().nullish().describe("A URL or a data URL."),
    file_id: z.string().nullish(),
    detail: z
      .string()
      .nullish()
      .describe("auto, low or high; other values if the model supports them."),
    ...cacheMarkers,
  })
  .refine(({ image_url: url, file_id: id }) => typeof (url ?? id) === "string", {
    error: "is required: an address or a data URL, or a file_id.",
    path: ["image_url"],
  })
  .meta({ anyOf: anyOfMembers(["image_url", "file_id"]) });

const filePart = z
  .looseObject({
    type: z.literal("input_file"),
    file_data: z.string().nullish(),
    file_id: z.string().nullish(),
    file_url: z.string().nullish(),
    filename: z.string().nullish(),
    ...cacheMarkers,
  })
  .refine(
    ({ file_data: data, file_url: url, file_id: id }) => typeof (data ?? url ?? id) === "string",
    { error: "needs file_data, file_url or file_id." },
  )
  .meta({ anyOf: anyOfMembers(["file_data", "file_url", "file_id"]) });

const partTypes = [...textTypes, "input_image", "input_file", "input_audio", "refusal"];

/** Parts of a message; a string is a text part. */
const contentPart = z.union([
  z.string(),
  textPart,
  imagePart,
  filePart,
  z.looseObject({ type: z.literal("input_audio"), input_audio: sound, ...cacheMarkers }),
  z.looseObject({ type: z.literal("refusal"), refusal: z.string() }),
  otherType(partTypes),
]);

/** Parts of a tool's result, which cannot contain sound. */
const outputPart = z.union([
  z.string(),
  textPart,
  imagePart,
  filePart,
  otherType(partTypes.filter((type) => type !== "refusal")),
]);

const partsProblem = { error: "must be a string or an array of content parts." };

const content = z.union([z.string(), z.array(contentPart)], partsProblem).nullish();

const itemTypes = [
  "message",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
  "reasoning",
  "item_reference",
];

/**
 * Other items. Their types are many and growing; all but the described ones consist of several
 * words.
 */
const otherItem = z.looseObject({
  type: z
    .string({ error: "must be a string." })
    .refine((type) => !itemTypes.includes(type) && /_|^(?:compaction|program)$/.test(type), {
      error: "is no type of an item, such as message, function_call_output or reasoning.",
    })
    .meta({ not: { enum: itemTypes }, pattern: "_|^(?:compaction|program)$" }),
});

/** The schema of an object that has a member. */
const havingMember = (name: string) => ({ properties: { [name]: {} }, required: [name] });

/** A reference without its type, which only its id tells from a message. */
const untypedReference = z
  .looseObject({ type: z.null().optional(), id: z.string() })
  .refine((item) => !("role" in item) && !("content" in item), {
    error: "must be one of user, assistant, system, developer.",
    path: ["role"],
  })
  .meta({ not: { anyOf: ["role", "content"].map((name) => havingMember(name)) } });

const callShape = {
  id: z.string().nullish(),
  call_id: z.string(),
  name: z.string(),
  namespace: z.string().nullish(),
};

const inputItem = z
  .union(
    [
      z.looseObject({
        type: z.literal("message").nullish(),
        role: z.enum(["user", "assistant", "system", "developer"], {
          error: "is required: user, assistant, system or developer.",
        }),
        content,
        phase: z.string().nullish(),
      }),
      z.looseObject({ type: z.literal("function_call"), ...callShape, arguments: callArguments }),
      z.looseObject({
        type: z.literal("custom_tool_call"),
        ...callShape,
        input: z.string().nullish(),
      }),
      z.looseObject({
        type: z.enum(["function_call_output", "custom_tool_call_output"]),
        // Left out, it is the output of the earliest call that has none.
        call_id: z.string().nullish(),
        output: z.union([z.string(), z.array(outputPart)], partsProblem).nullish(),
      }),
      z.looseObject({
        type: z.literal("reasoning"),
        id: z.string().nullish(),
        summary: z.array(open).nullish(),
        content: z.array(open).nullish(),
        encrypted_content: z
          .string()
          .nullish()
          .describe("Sent only to the provider that created it."),
      }),
      z.looseObject({ type: z.literal("item_reference"), id: z.string() }),
      untypedReference,
      otherItem,
    ],
    { error: "must be an object with a type, or with a role and content." },
  )
  .describe("An input item. Unlisted types are forwarded to providers of the same dialect only.");

const tool = z
  .union([
    z.looseObject({ type: z.literal("function"), ...functionShape, ...cacheMarkers }),
    z.looseObject({
      type: z.literal("custom"),
      name: z.string().min(1),
      description: z.string().nullish(),
      format: z
        .union([
          z.looseObject({
            type: z.literal("grammar"),
            syntax: z.string(),
            definition: z.string(),
          }),
          otherType(["grammar"]),
        ])
        .nullish(),
      ...cacheMarkers,
    }),
    z.looseObject({
      type: z.literal("namespace"),
      name: z.string(),
      description: z.string().nullish(),
      tools: z.array(z.looseObject({ type: z.string() })).nullish(),
    }),
    otherType(["function", "custom", "namespace"]).describe(
      "Tools that the provider runs; omitted for providers without them.",
    ),
  ])
  .register(namedAsWhole, {
    problem: 'must be an object with a type, for example "function".',
  });

/** Returns the schema of a choice that names a tool; some clients nest the name as chat does. */
const choiceOf = (kind: "function" | "custom") =>
  z
    .looseObject({
      type: z.literal(kind),
      name: z.string().nullish(),
      [kind]: z.looseObject({ name: z.string().nullish() }).nullish(),
    })
    .refine((choice) => typeof (choice.name ?? nestedName(choice[kind])) === "string", {
      error: "is required and must be a string.",
      path: ["name"],
    })
    .meta({
      anyOf: [
        { required: ["name"], properties: { name: { type: "string" } } },
        {
          required: [kind],
          properties: {
            [kind]: {
              type: "object",
              required: ["name"],
              properties: { name: { type: "string" } },
            },
          },
        },
      ],
    });

const nestedName = (nested: unknown): unknown => asObject(nested)?.["name"];

const toolChoice = z.union(
  [
    choiceWord,
    choiceOf("function"),
    choiceOf("custom"),
    z.looseObject({
      type: z.literal("allowed_tools"),
      mode: z.enum(["auto", "required"]).nullish(),
      tools: z.array(z.looseObject({ type: z.string() })),
    }),
    otherType(["function", "custom", "allowed_tools"]),
  ],
  { error: choiceProblem },
);

/**
 * The body of `POST /responses`: the contract's fields, OpenAI's reference (openai 7.59) and what
 * Open Responses adds. Null means absent, except for `model` and `input`. Undescribed fields are
 * passed on to upstreams of the same dialect.
 */
export const responsesRequestSchema = z.looseObject({
  model: modelField,
  input: z.union([z.string(), z.array(inputItem)], {
    error:
      'is required: send text, or an array of items such as {"role": "user", "content": "Hello"}.',
  }),
  instructions: z.string().nullish(),
  ...gatewayShape,
  previous_response_id: z
    .string()
    .nullish()
    .describe("Id of the stored response of the same workspace to continue."),
  conversation: z
    .null({ error: "is not offered; leave it out and continue with previous_response_id." })
    .optional()
    .describe(
      "Not supported, since conversations would belong to a provider; use previous_response_id.",
    ),
  store: z.boolean().nullish().describe("Whether to store the response. Default true."),
  background: z
    .boolean()
    .nullish()
    .describe("Whether to queue the response and answer immediately."),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_obfuscation: z.boolean().nullish() }).nullish(),
  include: z.array(z.string()).nullish(),
  max_output_tokens: integer(1).nullish(),
  max_tool_calls: integer().nullish(),
  ...samplingShape,
  top_logprobs: topLogprobs,
  tools: z
    .array(tool, {
      error: 'must be an array of tools such as {"type": "function", "name": "..."}.',
    })
    .nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  reasoning: z.looseObject(reasoningShape).nullish(),
  text: z
    .looseObject({
      format: z
        .union([
          z.looseObject({ type: z.literal("json_schema"), ...answerSchemaShape }),
          otherType(["json_schema"]),
        ])
        .nullish(),
      verbosity: z.string().nullish(),
    })
    .nullish(),
  modalities: z.array(z.string()).nullish(),
  truncation: z.string().nullish(),
  ...identityShape,
});

/** Checks a Responses request; see `requestCheck`. */
export const checkResponsesRequest = requestCheck(responsesRequestSchema, (body) => {
  checkLifecycle(body);
});

function checkLifecycle(body: Fields): void {
  const { input, background, store, previous_response_id: previous, instructions } = body;
  if (Array.isArray(input) && input.length === 0 && (previous ?? instructions ?? null) === null)
    throw badRequest("input", "is empty: send text, or at least one item.");
  if (background === true && store === false)
    throw badRequest("background", "needs a stored response; leave out store, or set it to true.");
}

/** Request fields for the gateway, which are removed from every body that is sent upstream. */
export const responsesGatewayFields = gatewayFieldNames;

/**
 * Request fields of the stored lifecycle, which the gateway handles itself: an upstream stores
 * nothing.
 */
export const responsesLifecycleFields = [
  "previous_response_id",
  "conversation",
  "background",
] as const;

/** Request fields that the canonical form names; all others are kept as extensions. */
export const responsesRequestFields: ReadonlySet<string> = new Set(
  Object.keys(responsesRequestSchema.shape).filter(
    (key) => key !== "max_tool_calls" && key !== "truncation",
  ),
);

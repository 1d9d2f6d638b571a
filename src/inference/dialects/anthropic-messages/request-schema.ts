import { z } from "zod";
import {
  namedAsWhole,
  requestCheck,
  gatewayFieldNames,
  gatewayShape,
  integer,
  modelField,
  open,
  otherType,
  type Fields,
} from "../shared/request-check.ts";
import { asObject, badRequest } from "../shared/wire-fields.ts";

const cacheControl = {
  cache_control: z.looseObject({ type: z.string(), ttl: z.string().nullish() }).nullish(),
};

const citations = z.looseObject({ enabled: z.boolean().nullish() }).nullish();

const textBlock = z.looseObject({
  type: z.literal("text"),
  text: z.string(),
  citations: z.array(open).nullish(),
  ...cacheControl,
});

/**
 * Bytes, an address, or a file of the provider's; other sources are kept for upstreams that know
 * them.
 */
const mediaSources = [
  z.looseObject({ type: z.literal("base64"), media_type: z.string(), data: z.string() }),
  z.looseObject({ type: z.literal("url"), url: z.string() }),
  z.looseObject({ type: z.literal("file"), file_id: z.string() }),
] as const;

const sourceProblem = {
  error: 'is required: {"type": "base64", "media_type": "...", "data": "..."}.',
};

const imageBlock = z.looseObject({
  type: z.literal("image"),
  source: z.union([...mediaSources, otherType(["base64", "url", "file"])], sourceProblem),
  ...cacheControl,
});

const documentBlock = z.looseObject({
  type: z.literal("document"),
  source: z.union(
    [
      ...mediaSources,
      z.looseObject({
        type: z.literal("text"),
        media_type: z.string().nullish(),
        data: z.string(),
      }),
      z.looseObject({
        type: z.literal("content"),
        content: z
          .union([
            z.string(),
            z.array(z.union([textBlock, imageBlock, otherType(["text", "image"])])),
          ])
          .nullish(),
      }),
      otherType(["base64", "url", "file", "text", "content"]),
    ],
    sourceProblem,
  ),
  title: z.string().nullish(),
  context: z.string().nullish(),
  citations,
  ...cacheControl,
});

const searchResultBlock = z.looseObject({
  type: z.literal("search_result"),
  source: z.string(),
  title: z.string().nullish(),
  content: z.array(textBlock),
  citations,
  ...cacheControl,
});

const toolResultBlock = z.looseObject({
  type: z.literal("tool_result"),
  tool_use_id: z.string(),
  content: z
    .union([
      z.string(),
      z.array(
        z.union([
          textBlock,
          imageBlock,
          documentBlock,
          searchResultBlock,
          otherType(["text", "image", "document", "search_result"]),
        ]),
      ),
    ])
    .nullish(),
  is_error: z.boolean().nullish(),
  ...cacheControl,
});

const block = z.union([
  textBlock,
  imageBlock,
  documentBlock,
  searchResultBlock,
  z.looseObject({
    type: z.literal("thinking"),
    thinking: z.string().nullish(),
    signature: z
      .string()
      .nullish()
      .describe("Reasoning as it was received. It may be omitted but must not be changed."),
  }),
  z.looseObject({ type: z.literal("redacted_thinking"), data: z.string() }),
  z.looseObject({
    type: z.literal("tool_use"),
    id: z.string(),
    name: z.string(),
    input: z.unknown().optional(),
    ...cacheControl,
  }),
  toolResultBlock,
  otherType([
    "text",
    "image",
    "document",
    "search_result",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
  ]),
]);

const content = z.union([z.string(), z.array(block)], {
  error: "must be a string or an array of content blocks.",
});

const message = z
  .union(
    [
      z.looseObject({ role: z.literal("user"), content }),
      z.looseObject({
        role: z.enum(["assistant", "system"], {
          error: "must be one of user, assistant, system.",
        }),
        // Agents replay turns of the model that were cut off before any content; a system message
        // may only set options.
        content: content.nullish(),
      }),
    ],
    { error: "must be an object with a role and content." },
  )
  .describe(
    "A message. Blocks of other types are forwarded to providers of the same dialect only.",
  );

const tool = z.union(
  [
    z.looseObject({
      type: z.enum(["custom", ""]).nullish(),
      name: z.string().min(1),
      description: z.string().nullish(),
      input_schema: open.nullish().describe("JSON Schema of the tool's input."),
      strict: z.boolean().nullish(),
      defer_loading: z.boolean().nullish(),
      input_examples: z.array(z.unknown()).nullish(),
      ...cacheControl,
    }),
    otherType(["custom", ""]).describe("A tool that the provider runs, by its dated type."),
  ],
  { error: "must be an object with a name and an input_schema, or with a dated type." },
);

const oneCallAtATime = { disable_parallel_tool_use: z.boolean().nullish() };

const toolChoice = z.union(
  [
    z.looseObject({ type: z.literal("tool"), name: z.string(), ...oneCallAtATime }),
    otherType(["tool"]).extend(oneCallAtATime).describe("auto, any or none."),
  ],
  { error: "must be an object with a type: auto, any, tool or none." },
);

const thinkingTypes = ["enabled", "disabled", "adaptive", "between_tools"];

const thinking = z
  .looseObject({
    type: z
      .string()
      .refine((type) => thinkingTypes.includes(type) || type.includes("_"), {
        error: `must be one of ${thinkingTypes.join(", ")}; leave it out for the default.`,
      })
      .meta({
        anyOf: [{ enum: thinkingTypes }, { pattern: "_" }],
        description:
          "enabled, disabled, adaptive or between_tools. The provider checks later types.",
      }),
    budget_tokens: integer().nullish(),
    display: z.string().nullish(),
  })
  .register(namedAsWhole, { problem: "must be an object with a type." });

const messagesProblem =
  'is required: send at least one message such as {"role": "user", "content": "Hello"}.';

/** A conversation that the provider holds, and the answer that a request continues. */
const thread = z.union(
  [
    z.looseObject({
      type: z.literal("continue"),
      previous_message_id: z.string().describe("Id of the answer that is continued."),
    }),
    otherType(["continue"]),
  ],
  { error: 'must be an object such as {"type": "create"}; leave it out for none.' },
);

/**
 * The body of `POST /messages`: the contract's fields and Anthropic's reference (@anthropic-ai/sdk
 * 1.14). Null means absent, except for the required fields. Undescribed fields are passed on to
 * upstreams of the same dialect.
 */
export const messagesRequestSchema = z.looseObject({
  model: modelField,
  messages: z.array(message, { error: messagesProblem }),
  // Zero only caches the prompt (Anthropic, 2026).
  max_tokens: z
    .number({ error: "is required and must be an integer: the bound on output tokens." })
    .min(0)
    .multipleOf(1)
    .meta({ type: "integer", description: "Maximum number of output tokens." }),
  system: z
    .union([z.string(), z.array(textBlock)], {
      error: "must be a string or an array of text blocks.",
    })
    .nullish(),
  tools: z.array(tool, { error: "must be an array of tools." }).nullish(),
  tool_choice: toolChoice.nullish(),
  thinking: thinking.nullish(),
  output_config: z
    .looseObject({
      effort: z.string().nullish(),
      format: z.looseObject({ type: z.string(), schema: open.nullish() }).nullish(),
    })
    .nullish(),
  stream: z.boolean().nullish(),
  stop_sequences: z
    .array(z.string())
    .register(namedAsWhole, { problem: "must be an array of strings." })
    .nullish(),
  temperature: z.number().min(0).max(1).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: integer().nullish(),
  metadata: z.looseObject({ user_id: z.string().nullish() }).nullish(),
  service_tier: z.string().nullish(),
  thread: thread
    .nullish()
    .describe("A conversation that the provider holds; only providers that offer it are used."),
  diagnostics: z
    .looseObject({
      previous_message_id: z
        .string()
        .nullish()
        .describe("Id of the answer with which the provider compares this request's prompt."),
    })
    .nullish()
    .describe("Asks the provider why a prompt was not read from its cache."),
  ...gatewayShape,
});

/** Checks a Messages request; see `requestCheck`. */
export const checkMessagesRequest = requestCheck(messagesRequestSchema, checkMessages);

/** Refuses a conversation without messages, unless the provider holds it and a turn is resumed. */
function checkMessages({ messages, thread: held }: Fields): void {
  const resumes = asObject(held)?.["type"] === "continue";
  if (Array.isArray(messages) && messages.length === 0 && !resumes)
    throw badRequest("messages", messagesProblem);
}

/** The body of `POST /messages/count_tokens`, which generates nothing and so needs no cap. */
export const countTokensRequestSchema = messagesRequestSchema.extend({
  max_tokens: z.unknown().optional(),
});

/** Checks a request to count tokens; see `requestCheck`. */
export const checkCountRequest = requestCheck(countTokensRequestSchema, checkMessages);

/** Request fields for the gateway, which are removed from every body that is sent upstream. */
export const messagesGatewayFields = gatewayFieldNames;

import { z } from "zod";
import { isLongerThan } from "../../platform/kernel/characters.ts";
import { maxSessionIdLength, sessionIdProblem } from "./request-check.ts";

/** An object that is kept as it is. */
export const open = z.record(z.string(), z.unknown());

/**
 * An integer of any size, since JSON knows no largest one: seeds are 64-bit integers in OpenAI's
 * reference, of which JSON.parse keeps the size and not the last digits.
 */
export const integer = (low?: number, high?: number) => {
  const atLeast = low === undefined ? z.number() : z.number().min(low);
  const bounded = high === undefined ? atLeast : atLeast.max(high);
  return bounded.multipleOf(1).meta({ type: "integer" });
};

/** Objects whose `type` is not among those that are described: kept for providers that know them. */
export const otherType = (known: readonly string[]) =>
  z.looseObject({
    type: z
      .string({ error: "is required and must be a string." })
      .refine((type) => !known.includes(type))
      .meta({ not: { enum: known } }),
  });

/** The model of a request. */
export const modelField = z
  .string({
    error: 'is required: name a model such as "openai/gpt-4.1"; GET /models lists them.',
  })
  .min(1)
  .describe("Model id, a router id or @preset/<slug>, with an optional suffix.");

/** The session of a request. */
const sessionId = z
  .string()
  .refine((id) => !isLongerThan(id, maxSessionIdLength), {
    error: sessionIdProblem,
  })
  .meta({
    maxLength: maxSessionIdLength,
    description: "Requests of one session stay with one provider.",
  });

/**
 * What every client dialect lets a request ask of the gateway itself, but for `trace`, which chat
 * describes.
 */
export const gatewayShape = {
  models: z
    .array(z.string({ error: "must be a model id." }).min(1))
    .nullish()
    .describe("Fallback models."),
  provider: open.nullish().describe("Routing preferences."),
  session_id: sessionId.nullish(),
  trace: open.nullish(),
  require_params: z.array(z.string().min(1)).nullish(),
  min_context: z.number().min(0).nullish(),
};

/** Names of the fields that speak to the gateway; removed from every body that goes upstream. */
export const gatewayFieldNames = [
  "models",
  "provider",
  "session_id",
  "trace",
  "require_params",
  "min_context",
] as const;

const penalty = z.number().min(-2).max(2).nullish();

/** How the next token is drawn, as chat and Responses spell it. */
export const samplingShape = {
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: integer().nullish(),
  min_p: z.number().nullish(),
  top_a: z.number().nullish(),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  repetition_penalty: z.number().nullish(),
  seed: integer().nullish(),
};

/** Most likely tokens that may be asked for beside each. */
export const topLogprobs = integer(0, 20).nullish();

/** Whom a request is for, and how its provider is to treat it, as chat and Responses spell it. */
export const identityShape = {
  metadata: open.nullish(),
  user: z.string().nullish().describe("The end user's id."),
  safety_identifier: z.string().nullish(),
  service_tier: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  prompt_cache_retention: z.string().nullish(),
  prompt_cache_options: open.nullish(),
  moderation: open.nullish(),
};

/** Thinking as OpenRouter spells it, which chat and Responses both take. */
export const reasoningShape = {
  effort: z.string().nullish(),
  max_tokens: integer().nullish(),
  exclude: z.boolean().nullish(),
  enabled: z.boolean().nullish().describe("false turns thinking off."),
  summary: z.enum(["auto", "concise", "detailed"]).nullish(),
};

/** Marks of the end of a prompt's reusable beginning, in both spellings. */
export const cacheMarkers = {
  cache_control: z
    .looseObject({ type: z.string(), ttl: z.string().nullish() })
    .nullish()
    .describe("Cache marker as Messages spells it; kept where the upstream knows it."),
  prompt_cache_breakpoint: z
    .looseObject({ mode: z.string().nullish(), ttl: z.string().nullish() })
    .nullish()
    .describe("Marks the end of a reusable prompt prefix."),
};

/** The JSON text of a call's arguments; some clients send the object, or nothing. */
export const callArguments = z
  .union([z.string(), open])
  .nullish()
  .describe("JSON text of an object.");

/** Sound in a message. */
export const sound = z.looseObject(
  {
    data: z.string(),
    format: z.string().describe("wav or mp3; others where the model takes them."),
  },
  { error: 'is required: {"data": base64, "format": "wav"}.' },
);

/** A function as a tool: its name and what it takes. */
export const functionShape = {
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: open.nullish().describe("JSON Schema of the arguments."),
  strict: z.boolean().nullish(),
};

/** The words of `tool_choice`; `any` is Anthropic's for `required`, which some clients send here. */
export const choiceWord = z.enum(["none", "auto", "required", "any"]);

/** What is said of a `tool_choice` that is no word and no object. */
export const choiceProblem = 'must be "none", "auto", "required" or an object that names a tool.';

/** An answer that fits a schema: its name, the schema, and how strictly. */
export const answerSchemaShape = {
  name: z.string().nullish(),
  description: z.string().nullish(),
  schema: open.nullish(),
  strict: z.boolean().nullish(),
};

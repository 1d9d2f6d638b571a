import { z } from "zod";
import { isLongerThan } from "../../../platform/kernel/schema-problems.ts";
import { badRequest } from "./wire-fields.ts";

/** A request's body, or an object in it. */
export type Fields = Readonly<Record<string, unknown>>;

type Schema = z.core.$ZodType;

/**
 * Schemas that errors name in place of a member: an object without `type`, an array with an invalid
 * entry.
 */
export const namedAsWhole = z.registry<{ problem: string }>();

/** A field that does not match its schema, and its problem. */
interface Problem {
  path: readonly PropertyKey[];
  text: string;
  /** Whether the value has another type than the schema's, such as text in place of an object. */
  isOtherKind?: true;
}

/**
 * Creates the check of a request from its schema, which is the one that OpenAPI publishes. `rules`
 * checks what a schema cannot express, such as mutually exclusive fields. The check throws
 * GatewayError `bad_request` whose `param` names the first invalid field.
 *
 * Bodies are checked by code that TypeBox compiles from the schema (decision 0104). It is loaded
 * with the first request, so that the start does not wait for it. Until then, and to find the field
 * to name, the schema is walked.
 */
export function requestCheck<Body extends z.ZodType>(
  schema: Body,
  rules?: (body: Fields) => void,
): (body: Fields) => z.infer<Body> {
  let isCompiling = false;
  let fits: ((body: Fields) => boolean) | undefined;
  return (body) => {
    if (!isCompiling) {
      isCompiling = true;
      void compiledCheck(schema).then((check) => {
        fits = check;
      });
    }
    if (fits === undefined || !fits(body)) {
      const problem = problemIn(schema, body);
      if (problem !== undefined) throw badRequest(pathText(problem.path), problem.text);
    }
    checkSessionId(body);
    rules?.(body);
    return body as z.infer<Body>;
  };
}

/** The most characters of a `session_id`. */
export const maxSessionIdLength = 256;

/** The problem of a longer one. */
const sessionIdProblem = `may have at most ${maxSessionIdLength} characters; send a shorter one.`;

/**
 * Refuses a `session_id` that is too long in characters. Compiled checks count characters as
 * readers see them, each of which may have several code points.
 */
function checkSessionId({ session_id: id }: Fields): void {
  if (typeof id === "string" && isLongerThan(id, maxSessionIdLength))
    throw badRequest("session_id", sessionIdProblem);
}

/** Compiles a function that returns whether a value matches a schema, from the published schema. */
export async function compiledCheck(schema: Schema): Promise<(value: unknown) => boolean> {
  const { Compile } = await import("typebox/schema");
  const compiled = Compile(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }));
  return (value) => compiled.Check(value);
}

/** Returns the path of a field as callers write it, such as `messages[2].content`. */
function pathText(path: readonly PropertyKey[]): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? String(part) : `.${String(part)}`;
  }
  return text;
}

/**
 * Returns the problem of a value's first invalid field only, since a body may have millions of
 * them.
 */
function problemIn(schema: Schema, value: unknown): Problem | undefined {
  const found = innerProblem(schema, value);
  if (found === undefined) return undefined;
  const whole = namedAsWhole.get(schema);
  return whole !== undefined && isOfWhole(found, value) ? { path: [], text: whole.problem } : found;
}

/**
 * Returns whether a problem concerns the value as a whole: its type is missing, or an entry is
 * invalid.
 */
const isOfWhole = ({ path }: Problem, value: unknown): boolean =>
  path.length === 0 ||
  Array.isArray(value) ||
  (path.length === 1 && path[0] === "type" && typeof (value as Fields)["type"] !== "string");

function innerProblem(schema: Schema, value: unknown): Problem | undefined {
  if (schema instanceof z.core.$ZodOptional) {
    return value === undefined
      ? undefined
      : withWayOut(problemIn(schema._zod.def.innerType, value));
  }
  if (schema instanceof z.core.$ZodNullable)
    return value === null ? undefined : problemIn(schema._zod.def.innerType, value);
  if (schema instanceof z.core.$ZodLazy) return problemIn(schema._zod.def.getter(), value);
  if (schema instanceof z.core.$ZodUnion) return unionProblem(schema, value);
  if (schema instanceof z.core.$ZodObject) return objectProblem(schema, value);
  if (schema instanceof z.core.$ZodRecord) return recordProblem(schema, value);
  if (schema instanceof z.core.$ZodArray) return arrayProblem(schema, value);
  return valueProblem(schema, value);
}

/** Returns the problem with the note that an optional field may be omitted. */
const withWayOut = (problem: Problem | undefined): Problem | undefined =>
  problem?.path.length === 0 && problem.text.startsWith("must be ") && !problem.text.includes(";")
    ? { ...problem, text: `${problem.text.replace(/\.$/, "")}; leave it out for the default.` }
    : problem;

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const below = (key: PropertyKey, problem: Problem | undefined): Problem | undefined =>
  problem && { path: [key, ...problem.path], text: problem.text };

function objectProblem(schema: z.core.$ZodObject, value: unknown): Problem | undefined {
  if (!isObject(value)) return wrongKind(schema, value);
  for (const key in schema._zod.def.shape) {
    const member = schema._zod.def.shape[key];
    const problem = member && below(key, problemIn(member, value[key]));
    if (problem !== undefined) return problem;
  }
  return schema._zod.def.checks === undefined ? undefined : valueProblem(schema, value);
}

function recordProblem(schema: z.core.$ZodRecord, value: unknown): Problem | undefined {
  if (!isObject(value)) return wrongKind(schema, value);
  const { valueType } = schema._zod.def;
  if (valueType instanceof z.core.$ZodUnknown) return undefined;
  for (const key of Object.keys(value)) {
    const problem = below(key, problemIn(valueType, value[key]));
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function arrayProblem(schema: z.core.$ZodArray, value: unknown): Problem | undefined {
  if (!Array.isArray(value)) return wrongKind(schema, value);
  const { low = 0, high = value.length } = limitsOf(schema);
  if (value.length < low) return { path: [], text: wrongKind(schema, value).text };
  if (value.length > high)
    return { path: [], text: `may have at most ${high} entries; send fewer.` };
  for (let index = 0; index < value.length; index += 1) {
    const problem = below(index, problemIn(schema._zod.def.element, value[index]));
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/**
 * Returns the problem of the variant that was most likely meant: one of the value's type and, where
 * variants differ by their `type` or `role`, with the same one.
 */
function unionProblem(schema: z.core.$ZodUnion, value: unknown): Problem | undefined {
  const problems: Problem[] = [];
  for (const option of schema._zod.def.options) {
    const problem = problemIn(option, value);
    if (problem === undefined) return undefined;
    if (problem.isOtherKind === undefined) problems.push(problem);
  }
  const isAt = (tag: string, { path }: Problem): boolean => path.length === 1 && path[0] === tag;
  const tag = problems.some((problem) => isAt("type", problem)) ? "type" : "role";
  const meant = problems.find((problem) => !isAt(tag, problem)) ?? problems.at(-1);
  return meant ?? wrongKind(schema, value);
}

function valueProblem(schema: Schema, value: unknown): Problem | undefined {
  const result = z.core.safeParse(schema, value);
  if (result.success) return undefined;
  const issue = result.error.issues[0];
  return issue?.code === "custom"
    ? { path: issue.path, text: issue.message }
    : wrongKind(schema, value);
}

/** Returns the smallest and the largest value of a number, or of a length. */
function limitsOf(schema: Schema): { low?: number; high?: number } {
  const limits: { low?: number; high?: number } = {};
  for (const check of schema._zod.def.checks ?? []) {
    if (check instanceof z.core.$ZodCheckMinLength) limits.low = check._zod.def.minimum;
    if (check instanceof z.core.$ZodCheckMaxLength) limits.high = check._zod.def.maximum;
    if (check instanceof z.core.$ZodCheckGreaterThan) limits.low = Number(check._zod.def.value);
    if (check instanceof z.core.$ZodCheckLessThan) limits.high = Number(check._zod.def.value);
  }
  return limits;
}

/**
 * Returns the problem of a value that its schema does not accept, in the schema's own words if it
 * has some.
 */
function wrongKind(schema: Schema, value: unknown): Problem {
  const own = ownText(schema, value);
  const wanted = `must be ${nounOf(schema)}.`;
  const text = own ?? (value === undefined ? `is required and ${wanted}` : wanted);
  return { path: [], text, isOtherKind: true };
}

/** Returns what a schema itself says about values that it does not accept: its `error`. */
function ownText(schema: Schema, value: unknown): string | undefined {
  if (schema._zod.def.error === undefined) return undefined;
  return z.core.safeParse(schema, value).error?.issues[0]?.message;
}

/** Returns what a schema accepts, as an error names it. */
function nounOf(schema: Schema): string {
  if (schema instanceof z.core.$ZodNumber) return numberNoun(schema);
  if (schema instanceof z.core.$ZodBoolean) return "true or false";
  if (schema instanceof z.core.$ZodNull) return "null";
  if (schema instanceof z.core.$ZodLiteral) return schema._zod.def.values.map(quoted).join(" or ");
  if (schema instanceof z.core.$ZodEnum)
    return `one of ${Object.values(schema._zod.def.entries).join(", ")}`;
  if (schema instanceof z.core.$ZodArray) return "an array";
  if (schema instanceof z.core.$ZodString)
    return limitsOf(schema).low === undefined ? "a string" : "a non-empty string";
  if (schema instanceof z.core.$ZodUnion)
    return [...new Set(schema._zod.def.options.map(nounOf))].join(" or ");
  if (schema instanceof z.core.$ZodOptional || schema instanceof z.core.$ZodNullable)
    return nounOf(schema._zod.def.innerType);
  return schema instanceof z.core.$ZodLazy ? nounOf(schema._zod.def.getter()) : "an object";
}

const quoted = (value: unknown): string => JSON.stringify(value);

function numberNoun(schema: z.core.$ZodNumber): string {
  const { low, high } = limitsOf(schema);
  const noun = z.globalRegistry.get(schema)?.["type"] === "integer" ? "an integer" : "a number";
  if (high === undefined) {
    if (low === undefined) return noun;
    return low === 1 ? "a positive integer" : `${noun} from ${low}`;
  }
  return `${noun} from ${low} to ${high}`;
}

/** An object that is kept as it is. */
export const open = z.record(z.string(), z.unknown());

/**
 * An integer of any size, since JSON has no largest one: seeds are 64-bit integers in OpenAI's
 * reference, of which JSON.parse keeps the magnitude and not the last digits.
 */
export const integer = (low?: number, high?: number) => {
  const atLeast = low === undefined ? z.number() : z.number().min(low);
  const bounded = high === undefined ? atLeast : atLeast.max(high);
  return bounded.multipleOf(1).meta({ type: "integer" });
};

/** Objects whose `type` is not among the described ones, kept for providers that know them. */
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
  .describe("Id of a model or router, or @preset/<slug>, with an optional suffix.");

/** The session of a request. */
const sessionId = z
  .string()
  .refine((id) => !isLongerThan(id, maxSessionIdLength), {
    error: sessionIdProblem,
  })
  .meta({
    maxLength: maxSessionIdLength,
    description: "Id of a session. Its requests are sent to the same provider.",
  });

/**
 * The fields for the gateway itself that every client dialect accepts. Chat describes its `trace`
 * in detail.
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

/** Names of the fields for the gateway, which are removed from every body that is sent upstream. */
export const gatewayFieldNames = [
  "models",
  "provider",
  "session_id",
  "trace",
  "require_params",
  "min_context",
] as const;

const penalty = z.number().min(-2).max(2).nullish();

/** Sampling fields of chat and Responses. */
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

/** The number of most likely tokens that may be requested for each token. */
export const topLogprobs = integer(0, 20).nullish();

/** The end user of a request, and how the provider is to treat it, in chat and Responses. */
export const identityShape = {
  metadata: open.nullish(),
  user: z.string().nullish().describe("Id of the end user."),
  safety_identifier: z.string().nullish(),
  service_tier: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  prompt_cache_retention: z.string().nullish(),
  prompt_cache_options: open.nullish(),
  moderation: open.nullish(),
};

/** OpenRouter's reasoning object, which chat and Responses both accept. */
export const reasoningShape = {
  effort: z.string().nullish(),
  max_tokens: integer().nullish(),
  exclude: z.boolean().nullish(),
  enabled: z.boolean().nullish().describe("Whether reasoning is enabled; false turns it off."),
  summary: z.enum(["auto", "concise", "detailed"]).nullish(),
};

/** Marks of the end of a prompt's reusable beginning, under both names. */
export const cacheMarkers = {
  cache_control: z
    .looseObject({ type: z.string(), ttl: z.string().nullish() })
    .nullish()
    .describe("Cache marker of the Messages dialect; forwarded if the provider supports it."),
  prompt_cache_breakpoint: z
    .looseObject({ mode: z.string().nullish(), ttl: z.string().nullish() })
    .nullish()
    .describe("Marks the end of a reusable prompt prefix."),
};

/** The JSON text of a call's arguments; some clients send the object, or nothing. */
export const callArguments = z
  .union([z.string(), open])
  .nullish()
  .describe("An object as a JSON string.");

/** Sound in a message. */
export const sound = z.looseObject(
  {
    data: z.string(),
    format: z.string().describe("wav or mp3; other formats if the model supports them."),
  },
  { error: 'is required: {"data": base64, "format": "wav"}.' },
);

/** A function as a tool: its name and its parameters. */
export const functionShape = {
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: open.nullish().describe("JSON Schema of the arguments."),
  strict: z.boolean().nullish(),
};

/**
 * The words of `tool_choice`; `any` is Anthropic's for `required`, which some clients send here.
 */
export const choiceWord = z.enum(["none", "auto", "required", "any"]);

/** The problem of a `tool_choice` that is neither a known word nor an object. */
export const choiceProblem = 'must be "none", "auto", "required" or an object that names a tool.';

/** A schema for the answer: its name, the schema, and whether it is enforced. */
export const answerSchemaShape = {
  name: z.string().nullish(),
  description: z.string().nullish(),
  schema: open.nullish(),
  strict: z.boolean().nullish(),
};

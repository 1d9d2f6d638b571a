import type { InputKind, RequestNeeds } from "../canonical/request.ts";

type Body = Readonly<Record<string, unknown>>;

/**
 * Reads what requests of one client dialect ask of routes and of holds. Pure; every field may be of
 * any type, since what the gateway does not know of is passed on.
 */
export interface RequirementReader {
  /** Only routes that allow the output cap may serve; absent means that the cap is lowered. */
  readonly capChoosesRoutes?: true;
  /** The output cap that the caller set; undefined when it set none. */
  outputCap(body: Body): number | undefined;
  /** Whether the model is to think; undefined where the request does not say. */
  thinks(body: Body): boolean | undefined;
  /** Tokens that the translation of a wish for thoughts may add to the cap. */
  thoughtTokens(body: Body, thinks: boolean | undefined): number | undefined;
  /** The budget for thoughts that an upstream may be sent: a named one, or that of an effort. */
  thoughtBudget(body: Body, thoughtTokens: number | undefined): number | undefined;
  /** How many answers the caller asks for. */
  choices(body: Body): number;
  /** Whether tools are offered, or a choice among them is made. */
  needsTools(body: Body): boolean;
  /** The format that the answer is to have, with its `type`; undefined where none is asked for. */
  answerFormat(body: Body): unknown;
  /** The value of a parameter that providers declare; the names are those of chat. */
  parameter(body: Body, name: DeclaredParameter): unknown;
}

/** Parameters that providers may or may not support, by their declared names: those of chat. */
const declaredParameters = [
  "tools",
  "tool_choice",
  "response_format",
  "temperature",
  "top_p",
  "top_k",
  "seed",
  "stop",
  "frequency_penalty",
  "presence_penalty",
  "repetition_penalty",
  "logit_bias",
  "logprobs",
  "top_logprobs",
  "min_p",
  "reasoning_effort",
  "reasoning",
  "max_tokens",
  "max_completion_tokens",
] as const;

/** A parameter that providers declare. */
export type DeclaredParameter = (typeof declaredParameters)[number];

/** Names of the declared parameters that a request sets. */
export const parametersOf = (reader: RequirementReader, body: Body): string[] =>
  declaredParameters.filter((name) => isSet(reader.parameter(body, name)));

const noWishes: readonly string[] = [];
const formatWish: readonly string[] = ["response_format"];

/**
 * Names of the parameters that routes had better declare. A format of the answer is better kept by
 * routes that declare it, but none is left out for it (reasoning rule 6).
 */
export function wishesOf(reader: RequirementReader, body: Body): readonly string[] {
  const format = reader.answerFormat(body);
  if (format === undefined || format === null) return noWishes;
  const { type } = Object(format) as { type?: unknown };
  return type === undefined || type === "text" ? noWishes : formatWish;
}

/** Null means absent, as it does everywhere in requests. */
export const isSet = (value: unknown): boolean => value !== undefined && value !== null;

/** The value when it is a number. */
export const numberField = (value: unknown): number | undefined =>
  typeof value === "number" ? value : undefined;

/** A member of an object that is a field of the body. */
export const nestedField = (body: Body, field: string, member: string): unknown =>
  typeof body[field] === "object" && body[field] !== null
    ? (body[field] as Body)[member]
    : undefined;

/** Whether an array has an entry. */
export const isFilled = (value: unknown): boolean => Array.isArray(value) && value.length > 0;

/** The largest budget that Messages upstreams are given for an effort (`reasoning-rules.ts`). */
const thoughtTokensMost = 32_000;

/** What OpenAI's dialects say of thoughts, flat or in the `reasoning` object. */
export const openaiThoughts: Pick<RequirementReader, "thinks" | "thoughtTokens" | "thoughtBudget"> =
  {
    thinks(body) {
      const { reasoning } = body;
      const effort = body["reasoning_effort"] ?? nestedField(body, "reasoning", "effort");
      if (effort === "none" || nestedField(body, "reasoning", "enabled") === false) return false;
      return typeof effort === "string" || (typeof reasoning === "object" && reasoning !== null)
        ? true
        : undefined;
    },
    thoughtTokens: (body, thinks) =>
      thinks
        ? (numberField(nestedField(body, "reasoning", "max_tokens")) ?? thoughtTokensMost)
        : undefined,
    thoughtBudget: (_, thoughtTokens) => thoughtTokens,
  };

/**
 * Words of all dialects for pictures and sound that go in; whether they are there is looked for in
 * the text.
 */
const richInput = /"(?:image_url|input_image|input_audio|input_file|image|file|document)"/;

/**
 * Whether tokens may be used that have a price of their own, by the name of that part of a price:
 * those that are written to a cache, or of pictures and sound.
 */
export function mayUsePart({ body, text }: { body: Body; text: string }, part: string): boolean {
  switch (part) {
    case "cacheWriteTokens":
      return text.includes('"cache_control"');
    case "cacheWriteOneHourTokens":
      return text.includes('"cache_control"') && text.includes('"1h"');
    case "inputAudioTokens":
    case "inputImageTokens":
      return richInput.test(text);
    default:
      return (
        Array.isArray(body["modalities"]) &&
        body["modalities"].some((modality) => modality !== "text")
      );
  }
}

/** Bytes of text that make one token, on the average of the field's tokenizers. */
const bytesPerToken = 4;
/**
 * Tokens that a picture, a sound or a document costs at least: a guess for holds only.
 */
const tokensPerBinaryPart = 1_600;
/** Base64 that is shorter than this is as likely a word. */
const binaryLengthMin = 64;

/**
 * Data URLs, the members that hold base64 in the dialects of clients, and those that name a picture
 * or a file elsewhere.
 */
const binaryMark = /"(?:data:[a-z]+\/|(?:data|file_data|url|image_url|file_url|file_id)"\s*:\s*")/;
const binaryMembers: ReadonlySet<string> = new Set(["data", "file_data"]);
const namingMembers: ReadonlySet<string> = new Set(["url", "image_url", "file_url", "file_id"]);

function bytesOf(value: unknown, key: string): number {
  if (typeof value === "string") {
    const binary =
      value.startsWith("data:") ||
      (binaryMembers.has(key) && value.length >= binaryLengthMin) ||
      namingMembers.has(key);
    return binary ? tokensPerBinaryPart * bytesPerToken : Buffer.byteLength(value);
  }
  if (typeof value !== "object" || value === null) return 4;
  let sum = 2;
  if (Array.isArray(value)) for (const entry of value) sum += bytesOf(entry, key) + 1;
  else
    for (const name in value)
      sum += name.length + 4 + bytesOf((value as Record<string, unknown>)[name], name);
  return sum;
}

/**
 * Input tokens of a body for holds and for usage that no provider reported: its length over four,
 * with embedded pictures, sounds and documents at a flat rate instead of their base64 length.
 */
export function estimateInputTokens(text: string, body: Readonly<Record<string, unknown>>): number {
  // Bytes rather than characters: scripts that take three bytes a character take about a token for
  // each, too.
  const bytes = binaryMark.test(text) ? bytesOf(body, "") : Buffer.byteLength(text);
  return Math.ceil(bytes / bytesPerToken);
}

/** Types of content parts in the dialects of clients. */
const kindsOfParts: Readonly<Record<string, InputKind>> = {
  image_url: "vision",
  input_image: "vision",
  image: "vision",
  input_audio: "audio-input",
  file: "document-input",
  input_file: "document-input",
  document: "document-input",
};

/**
 * Content stands in messages, in their tool results and in those of Responses; no dialect nests
 * deeper.
 */
const depthMax = 5;

function collect(value: unknown, inputs: Set<InputKind>, depth = 0): void {
  if (typeof value !== "object" || value === null || depth > depthMax) return;
  if (Array.isArray(value)) {
    for (const entry of value) collect(entry, inputs, depth + 1);
    return;
  }
  const { type, content, output } = value as Body;
  const kind = typeof type === "string" ? kindsOfParts[type] : undefined;
  if (kind !== undefined) inputs.add(kind);
  collect(content, inputs, depth + 1);
  collect(output, inputs, depth + 1);
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Body)[name] : undefined;

/**
 * Effort as a flat word, from whichever member a dialect has for it (contract: "Reasoning rules" 1
 * and 2).
 */
function effortOf(body: Body): string | undefined {
  const { reasoning, thinking } = body;
  const kind = memberOf(thinking, "type");
  if (kind === "disabled" || memberOf(reasoning, "enabled") === false) return "none";
  const written =
    body["reasoning_effort"] ??
    memberOf(reasoning, "effort") ??
    memberOf(body["output_config"], "effort");
  if (typeof written === "string") return written.toLowerCase();
  return kind === "enabled" ? "high" : undefined;
}

/** Reads what a request needs from its body, in whichever client dialect it is. */
export function needsOf(body: Body): RequestNeeds {
  const inputs = new Set<InputKind>();
  collect(body["messages"], inputs);
  collect(body["input"], inputs);
  return { inputs, effort: effortOf(body) };
}

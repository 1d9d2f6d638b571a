import { GatewayError } from "../../../platform/kernel/errors.ts";
import { estimateInputTokens } from "../../dialects/shared/requirements.ts";
import { listOf, requireFields, type Fields } from "../read-fields.ts";
import { FieldReader } from "../field-reader.ts";
import type { SortKey } from "../../routing/provider-preferences.ts";
import { isObject } from "../../../platform/kernel/json/json-members.ts";

/**
 * A text, as itself or as its token ids, or an object for models that accept more than text: in the
 * form of the provider, or with `content` parts of type `text` and `image_url`, as in chat.
 */
export type EmbeddingInput = string | readonly number[] | Fields;

/** A request for embeddings (contract: `POST /embeddings`). */
export interface EmbeddingRequest {
  /** The model as the caller wrote it. */
  model: string;
  /** At least one. */
  inputs: readonly EmbeddingInput[];
  format: VectorFormat;
  /** Whether the caller named the format. */
  formatNamed: boolean;
  dimensions: number | undefined;
  user: string | undefined;
  /** Fields that the contract does not have, which are sent upstream unchanged. */
  rest: Fields;
  /** Set for a client of Cohere's. */
  cohere?: CohereWishes;
}

/**
 * The options of Cohere's clients that OpenAI's lack, and the form in which they read the answer.
 */
export interface CohereWishes {
  /** The formats of the answer, at least one. */
  formats: readonly VectorFormat[];
  /**
   * Fields that other vendors lack or name differently: `input_type`, `truncate`, `max_tokens`,
   * `priority`.
   */
  fields: Fields;
  /** The texts, which the answer repeats. */
  texts: readonly string[] | undefined;
}

const known: ReadonlySet<string> = new Set([
  "model",
  "input",
  "encoding_format",
  "dimensions",
  "user",
  "session_id",
  "provider",
  "trace",
]);

/**
 * Reads a body. Throws `missing_required_fields`, or `invalid_request_error` that names the field.
 */
export function readEmbeddingRequest(body: Fields): EmbeddingRequest {
  requireFields({ ...body, input: body["input"] === "" ? "present" : body["input"] }, [
    "model",
    "input",
  ]);
  const fields = new FieldReader(body, "invalid_request_error");
  fields.checkSession();
  const format = body["encoding_format"] ?? "float";
  if (format !== "float" && format !== "base64")
    throw fields.refusal("encoding_format", "must be float or base64.");
  return {
    model: fields.text("model"),
    inputs: inputsOf(body["input"], fields),
    format,
    formatNamed: typeof body["encoding_format"] === "string",
    dimensions: fields.positive("dimensions"),
    user: fields.optionalText("user"),
    rest: Object.fromEntries(Object.entries(body).filter(([name]) => !known.has(name))),
  };
}

const isTokenId = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

function inputsOf(input: unknown, fields: FieldReader): readonly EmbeddingInput[] {
  if (typeof input === "string") return [textOf(input, "input", fields)];
  const list = listOf(input);
  if (list === undefined)
    throw fields.refusal("input", "must be a string, an array of strings, or token ids.");
  if (list.length === 0) throw fields.refusal("input", "must have at least one entry.");
  if (typeof list[0] === "number") return [tokensOf(list, "input", fields)];
  return list.map((entry, index) => entryOf(entry, `input[${index}]`, fields));
}

function entryOf(entry: unknown, param: string, fields: FieldReader): EmbeddingInput {
  if (typeof entry === "string") return textOf(entry, param, fields);
  if (isObject(entry)) return entry;
  const list = listOf(entry);
  if (list === undefined)
    throw fields.refusal(param, "must be a string, an array of token ids, or an object.");
  return tokensOf(list, param, fields);
}

function textOf(text: string, param: string, fields: FieldReader): string {
  if (text === "") throw fields.refusal(param, "must not be empty.");
  return text;
}

function tokensOf(list: readonly unknown[], param: string, fields: FieldReader): readonly number[] {
  if (list.length === 0 || !list.every(isTokenId))
    throw fields.refusal(param, "must be token ids: integers of at least 0.");
  return list;
}

/** Returns the content parts of an object input; undefined where it has another form. */
export function contentOf(input: Fields): readonly Fields[] | undefined {
  const content = listOf(input["content"]);
  return content !== undefined && content.length > 0 && content.every(isObject)
    ? content
    : undefined;
}

/** Returns the address or data URL of a picture part; undefined for other parts. */
export function imageOf({ type, image_url: image }: Fields): string | undefined {
  if (type !== "image_url") return undefined;
  const url = isObject(image) ? image["url"] : image;
  return typeof url === "string" ? url : undefined;
}

/** Builds the error for an input that a provider's dialect cannot express. */
export const unsupportedInput = (what: string): GatewayError =>
  new GatewayError("invalid_request_error", `No provider of this model takes ${what}.`, {
    param: "input",
  });

/** Estimates the tokens of all inputs. */
export function embeddingTokens(inputs: readonly EmbeddingInput[]): number {
  let tokens = 0;
  for (const input of inputs) {
    if (typeof input === "string") tokens += Math.ceil(Buffer.byteLength(input) / 4);
    else if (Array.isArray(input)) tokens += input.length;
    else tokens += estimateInputTokens(JSON.stringify(input), input as Fields);
  }
  return tokens;
}

/** Fields that only some vendors know, and that every client of Cohere's sends. */
const vendorFields = ["input_type", "truncate", "max_tokens", "priority"] as const;

const cohereMembers: ReadonlySet<string> = new Set([
  "model",
  "texts",
  "images",
  "inputs",
  "embedding_types",
  "output_dimension",
  "session_id",
  "provider",
  "trace",
  ...vendorFields,
]);

const sources = ["texts", "images", "inputs"] as const;

const picked = (body: Fields, wanted: (name: string) => boolean): Fields =>
  Object.fromEntries(
    Object.entries(body).filter(
      ([name, value]) => value !== undefined && value !== null && wanted(name),
    ),
  );

/**
 * Reads a body of Cohere's `POST /v2/embed`. Throws `missing_required_fields`, or
 * `invalid_request_error` that names the field. Source: https://docs.cohere.com/reference/embed
 */
export function readCohereEmbedRequest(body: Fields): EmbeddingRequest {
  const given = sources.filter((name) => body[name] !== undefined && body[name] !== null);
  requireFields({ ...body, texts: given.length === 0 ? undefined : "present" }, ["model", "texts"]);
  const fields = new FieldReader(body, "invalid_request_error");
  fields.checkSession();
  const [source = "texts", another] = given;
  if (another !== undefined)
    throw fields.refusal(another, `cannot be sent together with ${source}.`);
  const formats = formatsOf(body["embedding_types"], fields);
  const inputs = cohereInputsOf(source, fields, body);
  return {
    model: fields.text("model"),
    inputs,
    format: formats[0] ?? "float",
    formatNamed: true,
    dimensions: fields.positive("output_dimension"),
    user: undefined,
    rest: picked(body, (name) => !cohereMembers.has(name)),
    cohere: {
      formats,
      fields: picked(body, (name) => (vendorFields as readonly string[]).includes(name)),
      texts: source === "texts" ? (inputs as readonly string[]) : undefined,
    },
  };
}

function formatsOf(value: unknown, fields: FieldReader): readonly VectorFormat[] {
  if (value === undefined || value === null) return ["float"];
  const list = listOf(value);
  const areKnown =
    list?.every((format): format is VectorFormat => format === "float" || format === "base64") ??
    false;
  if (list === undefined || list.length === 0 || !areKnown)
    throw fields.refusal("embedding_types", "must be a list of float and base64.");
  return [...new Set(list as VectorFormat[])];
}

function cohereInputsOf(
  source: (typeof sources)[number],
  fields: FieldReader,
  body: Fields,
): readonly EmbeddingInput[] {
  const list = listOf(body[source]);
  if (list === undefined || list.length === 0)
    throw fields.refusal(source, "must be a list with at least one entry.");
  return list.map((entry, index) => {
    const param = `${source}[${index}]`;
    if (source === "inputs") {
      if (isObject(entry) && contentOf(entry) !== undefined) return entry;
      throw fields.refusal(param, "must be an object with content parts.");
    }
    if (typeof entry !== "string" || entry === "")
      throw fields.refusal(param, "must be a string, and not empty.");
    return source === "texts"
      ? entry
      : { content: [{ type: "image_url", image_url: { url: entry } }] };
  });
}

/** The sorts for the values of `X-Routing-Strategy`. */
const sorts: Readonly<Record<string, SortKey>> = {
  cheapest: "price",
  fastest: "latency",
  "most-available": "availability",
  price: "price",
  latency: "latency",
  throughput: "throughput",
};

/**
 * Returns the sort that the header requests; undefined without it. Throws `invalid_request_error`.
 */
export function sortOfStrategy(strategy: string | null): SortKey | undefined {
  if (strategy === null || strategy.trim() === "") return undefined;
  const name = strategy.trim().toLowerCase();
  if (Object.hasOwn(sorts, name)) return sorts[name];
  throw new GatewayError(
    "invalid_request_error",
    `X-Routing-Strategy must be one of ${Object.keys(sorts).join(", ")}.`,
    {
      param: "X-Routing-Strategy",
    },
  );
}

/** The form of a vector: numbers, or base64 of little-endian 32-bit floats (OpenAI). */
export type VectorFormat = "float" | "base64";

/** A vector in either format. */
export type Vector = readonly number[] | string;

const base64Pattern = /^[A-Za-z0-9+/]+={0,2}$/;

/** Reads a vector from an upstream; undefined when it is malformed. */
export function readVector(value: unknown): Vector | undefined {
  if (typeof value === "string") return isFloats(value) ? value : undefined;
  return Array.isArray(value) && value.length > 0 && value.every((entry) => Number.isFinite(entry))
    ? (value as number[])
    : undefined;
}

/** Returns whether a text is base64 of whole floats: four bytes each. */
function isFloats(text: string): boolean {
  return text.length > 0 && base64Pattern.test(text) && Buffer.byteLength(text, "base64") % 4 === 0;
}

/**
 * Converts the vector to the requested format; numbers lose what exceeds 32 bits when they become
 * base64.
 */
export function toFormat(vector: Vector, format: VectorFormat): Vector {
  if (format === "float") return typeof vector === "string" ? decode(vector) : vector;
  return typeof vector === "string" ? vector : encode(vector);
}

function encode(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (let index = 0; index < vector.length; index += 1)
    bytes.writeFloatLE(vector[index] ?? 0, index * 4);
  return bytes.toString("base64");
}

function decode(text: string): number[] {
  const bytes = Buffer.from(text, "base64");
  const vector = new Array<number>(bytes.length / 4);
  for (let index = 0; index < vector.length; index += 1)
    vector[index] = bytes.readFloatLE(index * 4);
  return vector;
}

import { GatewayError } from "../../../platform/lib/errors.ts";
import { estimateInputTokens } from "../../input-estimate.ts";
import { FieldReader, isObject, listOf, requireFields, type Fields } from "../read-fields.ts";
import type { VectorFormat } from "./vector-format.ts";

/**
 * One text, as itself or as its token ids, or an object for models that take more than text: in the form of
 * the provider, or with `content` parts of type `text` and `image_url`, as chat writes them.
 */
export type EmbeddingInput = string | readonly number[] | Fields;

/** A request for embeddings (contract: `POST /embeddings`). */
export interface EmbeddingRequest {
  /** The model as the caller wrote it. */
  model: string;
  /** At least one. */
  inputs: readonly EmbeddingInput[];
  format: VectorFormat;
  /** The caller named the format. */
  formatNamed: boolean;
  dimensions: number | undefined;
  user: string | undefined;
  /** Fields that the contract does not have; they are sent upstream as they are. */
  rest: Fields;
  /** Set where a client of Cohere's asks. */
  cohere?: CohereWishes;
}

/** What Cohere's clients ask beyond OpenAI's, and in which form they read the answer. */
export interface CohereWishes {
  /** Formats that the answer has, at least one. */
  formats: readonly VectorFormat[];
  /** Fields that other vendors lack or spell otherwise: `input_type`, `truncate`, `max_tokens`, `priority`. */
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

/** Reads a body. Throws `missing_required_fields`, or `invalid_request_error` that names the field. */
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

/** The content parts of an object input; undefined where it is of another form. */
export function contentOf(input: Fields): readonly Fields[] | undefined {
  const content = listOf(input["content"]);
  return content !== undefined && content.length > 0 && content.every(isObject)
    ? content
    : undefined;
}

/** The address or data URL of a content part that shows a picture; undefined where it does not. */
export function imageOf({ type, image_url: image }: Fields): string | undefined {
  if (type !== "image_url") return undefined;
  const url = isObject(image) ? image["url"] : image;
  return typeof url === "string" ? url : undefined;
}

/** The error for an input that a provider's dialect cannot say. */
export const unsayable = (what: string): GatewayError =>
  new GatewayError("invalid_request_error", `No provider of this model takes ${what}.`, {
    param: "input",
  });

/** The estimate of the tokens of all inputs. */
export function embeddingTokens(inputs: readonly EmbeddingInput[]): number {
  let tokens = 0;
  for (const input of inputs) {
    if (typeof input === "string") tokens += Math.ceil(Buffer.byteLength(input) / 4);
    else if (Array.isArray(input)) tokens += input.length;
    else tokens += estimateInputTokens(JSON.stringify(input), input as Fields);
  }
  return tokens;
}

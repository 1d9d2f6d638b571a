import { FieldReader, isObject, listOf, requireFields, type Fields } from "../read-fields.ts";
import { contentOf, type EmbeddingInput, type EmbeddingRequest } from "./embedding-request.ts";
import type { VectorFormat } from "./vector-format.ts";

/** Fields that only some vendors know, and that every client of Cohere's sends. */
const vendorFields = ["input_type", "truncate", "max_tokens", "priority"] as const;

const known: ReadonlySet<string> = new Set([
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
 * Reads a body of Cohere's `POST /v2/embed`. Throws `missing_required_fields`, or `invalid_request_error` that names the
 * field. Source: https://docs.cohere.com/reference/embed
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
  const inputs = inputsOf(source, fields, body);
  return {
    model: fields.text("model"),
    inputs,
    format: formats[0] ?? "float",
    formatNamed: true,
    dimensions: fields.positive("output_dimension"),
    user: undefined,
    rest: picked(body, (name) => !known.has(name)),
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

function inputsOf(
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

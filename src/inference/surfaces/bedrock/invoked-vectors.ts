import { asObject, asString, badRequest } from "../../dialects/shared/wire-fields.ts";
import {
  readCohereEmbedRequest,
  type EmbeddingInput,
  type EmbeddingRequest,
} from "../embeddings/embedding-request.ts";
import { FieldReader } from "../field-reader.ts";
import type { Fields } from "../read-fields.ts";

type Vectors = readonly (readonly number[])[];

/** A body of `InvokeModel` that asks for vectors, and the form of its answer. */
export interface InvokedVectors {
  request: EmbeddingRequest;
  render(vectors: Vectors, tokens: number): Fields;
}

/**
 * Returns what a body asks for, where it is one of the forms in which the embedding models of
 * Bedrock are asked: Titan's, Nova's and Cohere's. Each is for every model. Sources:
 * https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html,
 * model-parameters-titan-embed-mm.html, model-parameters-embed.html, and
 * https://docs.aws.amazon.com/nova/latest/userguide/embeddings-schema.html
 */
export function invokedVectors(body: Fields, model: string): InvokedVectors | undefined {
  const has = (...names: string[]): boolean => names.some((name) => body[name] !== undefined);
  if (has("inputText", "inputImage") && !has("textGenerationConfig")) return titan(body, model);
  if (body["taskType"] === "SINGLE_EMBEDDING") return nova(body, model);
  return has("texts", "images", "inputs") ? cohere(body, model) : undefined;
}

/** Returns a request for the vector of one input. */
const requestFor = (
  model: string,
  {
    input,
    dimensions,
    fields = {},
  }: { input: EmbeddingInput; dimensions: number | undefined; fields?: Fields },
): EmbeddingRequest => ({
  model,
  inputs: [input],
  format: "float",
  formatNamed: false,
  dimensions,
  user: undefined,
  rest: {},
  cohere: { formats: ["float"], fields, texts: undefined },
});

const picture = (url: string): Fields => ({ type: "image_url", image_url: { url } });

/** Returns a vector of length one; vectors of most vendors have it already. */
function unit(vector: readonly number[]): readonly number[] {
  const length = Math.hypot(...vector);
  return length === 0 || Math.abs(length - 1) < 1e-4
    ? vector
    : vector.map((value) => value / length);
}

function assertFloats(body: Fields, name: string): void {
  const types = body[name];
  if (types !== undefined && types !== null && String(types) !== "float")
    throw badRequest(name, 'must be ["float"]; other forms of vectors are those of one vendor.');
}

/** Returns the reader of an object in a body, which may be absent. */
const fieldsWithin = (body: Fields, name: string): FieldReader =>
  new FieldReader(asObject(body[name]) ?? {}, "bad_request", `${name}.`);

function titan(body: Fields, model: string): InvokedVectors {
  const fields = new FieldReader(body, "bad_request");
  const [text, image] = [fields.optionalText("inputText"), fields.optionalText("inputImage")];
  if (!text && !image) throw badRequest("inputText", "must not be empty.");
  assertFloats(body, "embeddingTypes");
  const config = fieldsWithin(body, "embeddingConfig");
  // Both parts have one vector together, and the picture has no media type.
  const parts = [
    ...(text ? [{ type: "text", text }] : []),
    ...(image ? [picture(`data:image/png;base64,${image}`)] : []),
  ];
  const shape = body["normalize"] === false ? (vector: readonly number[]) => vector : unit;
  return {
    request: requestFor(model, {
      input: image ? { content: parts } : (text ?? ""),
      dimensions: fields.positive("dimensions") ?? config.positive("outputEmbeddingLength"),
    }),
    render([vector = []], tokens) {
      const embedding = shape(vector);
      return {
        embedding,
        embeddingsByType: { float: embedding },
        inputTextTokenCount: tokens,
      };
    },
  };
}

/** Cohere's words for the purpose of a vector, by the last word of Nova's. */
const purposes: Readonly<Record<string, string>> = {
  INDEX: "search_document",
  RETRIEVAL: "search_query",
  CLASSIFICATION: "classification",
  CLUSTERING: "clustering",
};

function nova(body: Fields, model: string): InvokedVectors {
  const path = "singleEmbeddingParams";
  const asked = asObject(body[path]) ?? {};
  const [text, image] = [asObject(asked.text), asObject(asked.image)];
  const { bytes } = asObject(image?.source) ?? {};
  if (text === undefined && typeof bytes !== "string")
    throw badRequest(path, "needs text with a value, or image with the bytes of its source.");
  const value = asString(text?.value) ?? "";
  if (text !== undefined && value === "") throw badRequest(`${path}.text.value`, "is required.");
  const type = purposeOf(asked.embeddingPurpose);
  return {
    request: requestFor(model, {
      input:
        text === undefined
          ? { content: [picture(`data:image/${asString(image?.format) ?? "png"};base64,${bytes}`)] }
          : value,
      dimensions: fieldsWithin(body, path).positive("embeddingDimension"),
      fields: {
        ...(type !== undefined && { input_type: type }),
        ...(text?.truncationMode !== undefined && { truncate: text.truncationMode }),
      },
    }),
    render: ([embedding = []], inputTokenCount) => ({
      embeddings: [{ embeddingType: text === undefined ? "IMAGE" : "TEXT", embedding }],
      inputTokenCount,
    }),
  };
}

const purposeOf = (named: unknown): string | undefined =>
  purposes[(asString(named) ?? "").split("_").at(-1) ?? ""];

function cohere(body: Fields, model: string): InvokedVectors {
  assertFloats(body, "embedding_types");
  const request = readCohereEmbedRequest({ ...body, model });
  const texts = request.cohere?.texts ?? [];
  const isByType = (body["embedding_types"] ?? null) !== null;
  return {
    request,
    render: (vectors) => ({
      response_type: isByType ? "embeddings_by_type" : "embeddings_floats",
      embeddings: isByType ? { float: vectors } : vectors,
      texts,
    }),
  };
}

import type { RequestContext } from "../../access/define-endpoint.ts";
import type { Reply } from "../../http/reply.ts";
import type { JsonObject } from "../../inference/canonical/json.ts";
import { inCamelCase } from "../../inference/dialects/google-generate/contents/field-names.ts";
import {
  asNumber,
  asObject,
  asString,
  badRequest,
  objectsIn,
} from "../../inference/dialects/shared/wire-fields.ts";
import type {
  EmbeddingInput,
  EmbeddingRequest,
} from "../../inference/surfaces/embeddings/embedding-request.ts";
import type { Dependencies } from "../dependencies.ts";
import { answerVectors } from "../inference/foreign-vectors.ts";

/** Cohere's words for the purpose of a vector, by Google's; the others have none. */
const purposes: Readonly<Record<string, string>> = {
  RETRIEVAL_QUERY: "search_query",
  QUESTION_ANSWERING: "search_query",
  FACT_VERIFICATION: "search_query",
  CODE_RETRIEVAL_QUERY: "search_query",
  RETRIEVAL_DOCUMENT: "search_document",
  CLASSIFICATION: "classification",
  CLUSTERING: "clustering",
};

/** Answers `:embedContent`: one content, one vector. */
export const embed = (
  context: RequestContext,
  deps: Pick<Dependencies, "inference" | "counters">,
  model: string,
): Promise<Reply> =>
  embedContents(context, deps, {
    model,
    requestOf: (body) => readRequest([body], { model, path: () => "content" }),
    render: ([values]) => ({ embedding: { values } }),
  });

/** Answers `:batchEmbedContents`: a list of contents, each of which is one vector. */
export const embedMany = (
  context: RequestContext,
  deps: Pick<Dependencies, "inference" | "counters">,
  model: string,
): Promise<Reply> =>
  embedContents(context, deps, {
    model,
    requestOf({ requests }) {
      const list = objectsIn(requests);
      if (list.length === 0)
        throw badRequest("requests", "is required: send at least one with a content.");
      return readRequest(list, { model, path: (index) => `requests[${index}].content` });
    },
    render: (vectors) => ({ embeddings: vectors.map((values) => ({ values })) }),
  });

/** Answers `:predict`, as Vertex AI's clients ask for vectors: an instance for each. */
export const embedPredicted = (
  context: RequestContext,
  deps: Pick<Dependencies, "inference" | "counters">,
  model: string,
): Promise<Reply> =>
  embedContents(context, deps, {
    model,
    requestOf({ instances, parameters }) {
      const list = objectsIn(instances);
      if (list.length === 0)
        throw badRequest("instances", "is required: send at least one with a content.");
      const { outputDimensionality } = asObject(parameters) ?? {};
      return readRequest(
        list.map((instance) => ({ ...instance, outputDimensionality })),
        { model, path: (index) => `instances[${index}].content` },
      );
    },
    render: (vectors) => ({
      predictions: vectors.map((values) => ({ embeddings: { values } })),
    }),
  });

/** The forms of a request of one model, and of its answer. */
interface EmbedForm {
  model: string;
  requestOf(body: JsonObject): EmbeddingRequest;
  render(vectors: readonly (readonly number[])[]): JsonObject;
}

/** Answers a request for vectors in Google's form. */
const embedContents = (
  context: RequestContext,
  deps: Pick<Dependencies, "inference" | "counters">,
  { model, requestOf, render }: EmbedForm,
): Promise<Reply> =>
  answerVectors(context, deps, {
    modelOf: () => model,
    requestOf: ({ text, body }) => requestOf(inCamelCase(body as JsonObject, text)),
    render: ({ vectors, tokens, cost }) => ({
      ...render(vectors),
      usageMetadata: { promptTokenCount: tokens, cost },
    }),
  });

/** Reads requests of one model. What they say of purpose and length has to be the same for all. */
function readRequest(
  requests: readonly JsonObject[],
  { model, path }: { model: string; path(index: number): string },
): EmbeddingRequest {
  const [first = {}] = requests;
  const config = configOf(first);
  for (const [index, request] of requests.entries()) assertAlike(config, { request, index });
  const purpose = purposes[asString(config.taskType) ?? ""];
  return {
    model,
    inputs: requests.map((request, index) => inputOf(request.content, path(index))),
    format: "float",
    formatNamed: false,
    dimensions: asNumber(config.outputDimensionality),
    user: undefined,
    rest: {},
    cohere: {
      formats: ["float"],
      fields: purpose === undefined ? {} : { input_type: purpose },
      texts: undefined,
    },
  };
}

/** Returns where a request says what its vector is for: beside the content, or in a member. */
const configOf = (request: JsonObject): JsonObject =>
  asObject(request.embedContentConfig) ?? request;

/** The settings of a request that hold for all vectors of one call. */
const commonSettings = ["taskType", "outputDimensionality"] as const;

function assertAlike(
  first: JsonObject,
  { request, index }: { request: JsonObject; index: number },
): void {
  const config = configOf(request);
  const other = commonSettings.find((name) => config[name] !== first[name]);
  if (other !== undefined)
    throw badRequest(
      `requests[${index}].${other}`,
      "differs from that of requests[0]; send requests that differ in it one by one.",
    );
}

/** Returns the input of a content: its text, or its parts where it has others. */
function inputOf(content: unknown, path: string): EmbeddingInput {
  if (typeof content === "string" && content !== "") return content;
  const parts = objectsIn(asObject(content)?.parts);
  if (parts.length === 0) throw badRequest(path, 'is required: {"parts": [{"text": "..."}]}.');
  if (parts.every(({ text }) => typeof text === "string"))
    return parts.map(({ text }) => String(text)).join("\n");
  return {
    content: parts.map((part) => {
      if (typeof part.text === "string") return { type: "text", text: part.text };
      const { mimeType, data } = asObject(part.inlineData) ?? {};
      if (typeof mimeType !== "string" || typeof data !== "string")
        throw badRequest(path, "has a part that is neither a text nor inlineData.");
      return { type: "image_url", image_url: { url: `data:${mimeType};base64,${data}` } };
    }),
  };
}

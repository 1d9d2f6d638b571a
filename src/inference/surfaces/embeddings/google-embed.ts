import { withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import { googleModelName } from "../../providers/endpoint.ts";
import { listOf, type Fields } from "../read-fields.ts";
import { inputTokensOf } from "../whole-adapter.ts";
import {
  readVectors,
  type EmbeddingDialect,
  type EmbeddingPart,
  type Modality,
  searchSideOf,
} from "./embedding-dialect.ts";
import { contentOf, imageOf, unsupportedInput, type EmbeddingInput } from "./embedding-request.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

/** Google's values for other vendors' names of the two sides of a search. */
const taskTypes: Readonly<Record<string, string>> = {
  query: "RETRIEVAL_QUERY",
  document: "RETRIEVAL_DOCUMENT",
};

const modalityNames: Readonly<Record<string, Modality>> = {
  TEXT: "text_tokens",
  IMAGE: "image_tokens",
  AUDIO: "audio_tokens",
  DOCUMENT: "file_tokens",
  VIDEO: "video_tokens",
};

/**
 * The Gemini API's `models/{model}:batchEmbedContents`. Source:
 * https://ai.google.dev/api/embeddings
 */
export const googleEmbed: EmbeddingDialect = {
  inputsMax: 100,
  says: ["input_type"],
  encode({ upstreamModel, inputs, dimensions, rest, cohere }) {
    const { input_type: type = searchSideOf(cohere), ...more } = rest;
    return {
      requests: inputs.map((input) =>
        withoutUndefined<Record<string, unknown>>({
          taskType: typeof type === "string" ? (taskTypes[type] ?? type) : undefined,
          ...more,
          model: googleModelName(upstreamModel),
          content: { parts: partsOf(input) },
          outputDimensionality: dimensions,
        }),
      ),
    };
  },
  decode(body) {
    const { embeddings, usageMetadata } = fieldsOf(body);
    const list = listOf(embeddings)?.map((embedding) => fieldsOf(embedding)["values"]);
    const vectors = list && readVectors(list);
    const { promptTokenCount, promptTokenDetails, promptTokensDetails } = fieldsOf(usageMetadata);
    return (
      vectors && {
        vectors,
        metered: inputTokensOf(promptTokenCount),
        ...modalitiesOf(promptTokenDetails ?? promptTokensDetails),
      }
    );
  },
};

function partsOf(input: EmbeddingInput): readonly Fields[] {
  if (typeof input === "string") return [{ text: input }];
  const content = Array.isArray(input) ? undefined : contentOf(input as Fields);
  if (content === undefined) throw unsupportedInput("token ids or inputs without content parts");
  return content.map((part) => {
    const image = imageOf(part);
    if (image === undefined) return { text: String(part["text"] ?? "") };
    const [, mimeType, data] = /^data:([^;,]+);base64,(.+)$/s.exec(image) ?? [];
    if (data === undefined) throw unsupportedInput("pictures by address; send a data URL");
    return { inlineData: { mimeType, data } };
  });
}

function modalitiesOf(details: unknown): Pick<EmbeddingPart, "modalities"> {
  const modalities: Partial<Record<Modality, number>> = {};
  for (const entry of listOf(details) ?? []) {
    const { modality, tokenCount } = fieldsOf(entry);
    const name = modalityNames[String(modality)];
    if (name !== undefined && typeof tokenCount === "number" && tokenCount > 0)
      modalities[name] = tokenCount;
  }
  return Object.keys(modalities).length === 0 ? {} : { modalities };
}

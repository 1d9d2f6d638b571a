import { withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import type { Fields } from "../read-fields.ts";
import { inputTokensOf } from "../whole-adapter.ts";
import { readDataList, type EmbeddingDialect } from "./embedding-dialect.ts";
import { contentOf, imageOf, unsupportedInput, type EmbeddingInput } from "./embedding-request.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

/** Jina's `POST /embeddings`, which takes texts and pictures. Source: https://jina.ai/embeddings */
export const jinaEmbeddings: EmbeddingDialect = {
  inputsMax: 512,
  encode: ({ upstreamModel, inputs, format, dimensions, rest }) =>
    withoutUndefined<Record<string, unknown>>({
      ...rest,
      model: upstreamModel,
      input: inputs.map(wireInput),
      dimensions,
      embedding_type: format,
    }),
  decode(body) {
    const { data, usage } = fieldsOf(body);
    const { prompt_tokens: prompt, total_tokens: total } = fieldsOf(usage);
    const vectors = readDataList(data);
    return vectors && { vectors, metered: inputTokensOf(total ?? prompt) };
  },
};

function wireInput(input: EmbeddingInput): string | Fields {
  if (typeof input === "string") return input;
  if (Array.isArray(input)) throw unsupportedInput("token ids");
  const content = contentOf(input as Fields);
  // Jina's own `{text}` and `{image}`.
  if (content === undefined) return input as Fields;
  const [part, more] = content;
  if (part === undefined || more !== undefined)
    throw unsupportedInput("inputs of more than one part");
  const image = imageOf(part);
  return image === undefined
    ? { text: String(part["text"] ?? "") }
    : { image: image.replace(/^data:[^,]*,/, "") };
}

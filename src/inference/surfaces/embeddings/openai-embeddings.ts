import { readOpenaiUsage } from "../../dialects/shared/openai-fields.ts";
import { withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";
import {
  readDataList,
  type EmbeddingDialect,
  type EmbeddingPart,
  type Modality,
} from "./embedding-dialect.ts";

const modalityNames: readonly Modality[] = [
  "text_tokens",
  "image_tokens",
  "audio_tokens",
  "file_tokens",
  "video_tokens",
];

/**
 * OpenAI's `POST /embeddings`. Source:
 * https://platform.openai.com/docs/api-reference/embeddings/create
 */
export const openaiEmbeddings: EmbeddingDialect = {
  inputsMax: 2_048,
  encode: ({ upstreamModel, inputs, format, formatNamed, dimensions, user, rest }) =>
    withoutUndefined<Record<string, unknown>>({
      ...rest,
      model: upstreamModel,
      // A single text is sent as itself, since some servers accept nothing else.
      input: inputs.length === 1 && typeof inputs[0] === "string" ? inputs[0] : inputs,
      // Not all servers that resemble OpenAI's know the field.
      encoding_format: formatNamed ? format : undefined,
      dimensions,
      user,
    }),
  decode(body) {
    const { data, usage } = fieldsOf(body);
    const vectors = readDataList(data);
    return (
      vectors && {
        vectors,
        metered: readOpenaiUsage(usage),
        ...modalitiesOf(fieldsOf(usage)["prompt_tokens_details"]),
      }
    );
  },
};

function modalitiesOf(details: unknown): Pick<EmbeddingPart, "modalities"> {
  const counts = modalityNames.flatMap((name): [Modality, number][] => {
    const count = fieldsOf(details)[name];
    return typeof count === "number" && count > 0 ? [[name, count]] : [];
  });
  return counts.length === 0 ? {} : { modalities: Object.fromEntries(counts) };
}

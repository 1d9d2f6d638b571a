import { withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";
import { inputTokensOf } from "../whole-adapter.ts";
import { readDataList, type EmbeddingDialect, searchSideOf } from "./embedding-dialect.ts";
import { unsupportedInput } from "./embedding-request.ts";

/** Voyage's `POST /embeddings`. Source: https://docs.voyageai.com/reference/embeddings-api */
export const voyageEmbeddings: EmbeddingDialect = {
  inputsMax: 1_000,
  says: ["input_type"],
  encode({ upstreamModel, inputs, format, dimensions, rest, cohere }) {
    if (!inputs.every((input) => typeof input === "string"))
      throw unsupportedInput("anything but texts");
    return withoutUndefined<Record<string, unknown>>({
      input_type: searchSideOf(cohere),
      ...rest,
      model: upstreamModel,
      input: inputs,
      output_dimension: dimensions,
      // Numbers are the default; naming them is refused.
      encoding_format: format === "base64" ? format : undefined,
    });
  },
  decode(body) {
    const { data, usage } = fieldsOf(body);
    const vectors = readDataList(data);
    return vectors && { vectors, metered: inputTokensOf(fieldsOf(usage)["total_tokens"]) };
  },
};

import { withoutUndefined, CountReader } from "../../dialects/shared/wire-fields.ts";
import type { MeteredUsage } from "../../canonical/response.ts";
import { listOf, type Fields } from "../read-fields.ts";
import { readVectors, type EmbeddingDialect, type EmbeddingPart } from "./embedding-dialect.ts";
import { contentOf, unsupportedInput, type EmbeddingInput } from "./embedding-request.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

/** Cohere's values for other vendors' names of the two sides of a search. */
const inputTypes: Readonly<Record<string, string>> = {
  query: "search_query",
  document: "search_document",
};

/** Cohere's `POST /v2/embed`. Source: https://docs.cohere.com/reference/embed */
export const cohereEmbed: EmbeddingDialect = {
  inputsMax: 96,
  says: ["input_type", "truncate", "max_tokens", "priority"],
  encode({ upstreamModel, inputs, format, dimensions, rest, cohere }) {
    const { input_type: type = "document", ...more } = { ...rest, ...cohere };
    return withoutUndefined<Record<string, unknown>>({
      ...more,
      model: upstreamModel,
      ...wireInputs(inputs),
      // Required in every request since the third generation of its models.
      input_type: typeof type === "string" ? (inputTypes[type] ?? type) : type,
      embedding_types: [format],
      output_dimension: dimensions,
    });
  },
  decode(body) {
    const { embeddings, meta, id } = fieldsOf(body);
    const { float, base64 } = fieldsOf(embeddings);
    const list = listOf(float) ?? listOf(base64);
    const vectors = list && readVectors(list);
    const metered = usageOf(fieldsOf(meta)["billed_units"]);
    return (
      vectors && {
        vectors,
        metered,
        ...modalitiesOf(metered),
        ...(typeof id === "string" && { id }),
      }
    );
  },
};

/** Returns the counts of texts and pictures, which are reported separately. */
const modalitiesOf = (metered: MeteredUsage | undefined): Pick<EmbeddingPart, "modalities"> => {
  const { inputTokens = 0, inputImageTokens = 0 } = metered?.usage ?? {};
  return inputTokens > 0 && inputImageTokens > 0
    ? { modalities: { text_tokens: inputTokens, image_tokens: inputImageTokens } }
    : {};
};

function wireInputs(inputs: readonly EmbeddingInput[]): Fields {
  if (inputs.every((input) => typeof input === "string")) return { texts: inputs };
  return {
    inputs: inputs.map((input) => {
      if (typeof input === "string") return { content: [{ type: "text", text: input }] };
      const content = Array.isArray(input) ? undefined : contentOf(input as Fields);
      if (content === undefined)
        throw unsupportedInput("token ids or inputs without content parts");
      return { content };
    }),
  };
}

function usageOf(billed: unknown): MeteredUsage | undefined {
  const counts = new CountReader();
  const { input_tokens: text, image_tokens: image } = fieldsOf(billed);
  const [inputTokens, inputImageTokens] = [counts.read(text), counts.read(image)];
  if (inputTokens === undefined && inputImageTokens === undefined) return undefined;
  return {
    usage: withoutUndefined({ inputTokens, inputImageTokens }),
    estimated: false,
    clamped: counts.clamped,
  };
}

import { withoutUndefined } from "../../dialects/without-undefined.ts";
import { fieldsOf } from "../read-fields.ts";
import { readRanked, type RerankDialect } from "./rerank-dialect.ts";

/** Cohere's `POST /v2/rerank`, billed by search units. Source: https://docs.cohere.com/reference/rerank */
export const cohereRerank: RerankDialect = {
  encode: ({ query, documents, topN, maxTokensPerDocument }, upstreamModel) => ({
    body: withoutUndefined({
      model: upstreamModel,
      query,
      documents,
      top_n: topN,
      max_tokens_per_doc: maxTokensPerDocument,
    }),
    losses: [],
  }),
  decode(body) {
    const { results, meta, id } = fieldsOf(body);
    const ranked = readRanked(results);
    const { search_units: units } = fieldsOf(fieldsOf(meta)["billed_units"]);
    const searchUnits =
      typeof units === "number" && Number.isFinite(units) && units >= 0
        ? Math.ceil(units)
        : undefined;
    return ranked && { ranked, searchUnits, ...(typeof id === "string" && { id }) };
  },
};

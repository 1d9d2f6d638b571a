import { withoutUndefined } from "../../dialects/without-undefined.ts";
import { fieldsOf } from "../read-fields.ts";
import { cutDocuments, readRanked, type RerankDialect } from "./rerank-dialect.ts";

/** Voyage's `POST /v1/rerank`. Source: https://docs.voyageai.com/reference/reranker-api */
export const voyageRerank: RerankDialect = {
  encode(request, upstreamModel) {
    const { texts, losses } = cutDocuments(request);
    return {
      body: withoutUndefined({
        model: upstreamModel,
        query: request.query,
        documents: texts,
        top_k: request.topN,
      }),
      losses,
    };
  },
  decode(body) {
    const ranked = readRanked(fieldsOf(body)["data"]);
    return ranked && { ranked };
  },
};

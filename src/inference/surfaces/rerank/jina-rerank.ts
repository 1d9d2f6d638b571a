import { withoutUndefined } from "../../dialects/without-undefined.ts";
import { fieldsOf } from "../read-fields.ts";
import { cutDocuments, readRanked, type RerankDialect } from "./rerank-dialect.ts";

/** Jina's `POST /v1/rerank`. Source: https://jina.ai/reranker */
export const jinaRerank: RerankDialect = {
  encode(request, upstreamModel) {
    const { texts, losses } = cutDocuments(request);
    // The texts are here already: they need not come back.
    const body = withoutUndefined({
      model: upstreamModel,
      query: request.query,
      documents: texts,
      top_n: request.topN,
      return_documents: false,
    });
    return { body, losses };
  },
  decode(body) {
    const ranked = readRanked(fieldsOf(body)["results"]);
    return ranked && { ranked };
  },
};

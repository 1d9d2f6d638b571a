import type { Loss } from "../../canonical/request.ts";
import { fieldsOf, listOf } from "../read-fields.ts";
import type { RerankRequest } from "./rerank-request.ts";
import { withoutUndefined } from "../../dialects/wire-fields.ts";

/** A document's place among those of the request, and how well it fits. */
export interface RankedDocument {
  index: number;
  score: number;
}

/** What an answer holds, as far as it is used. */
export interface RankedPart {
  ranked: readonly RankedDocument[];
  /**
   * Cohere's unit of billing, one query with up to 100 documents; undefined where the provider has
   * none.
   */
  searchUnits?: number | undefined;
  id?: string;
}

/** How one vendor is asked to rank. Its page is named beside each dialect. */
export interface RerankDialect {
  encode(request: RerankRequest, upstreamModel: string): { body: object; losses: readonly Loss[] };
  /** Undefined when the body is no answer of the dialect. */
  decode(body: object): RankedPart | undefined;
}

/** A list of `{index, relevance_score}`; undefined when it is none. */
function readRanked(value: unknown): RankedDocument[] | undefined {
  const ranked: RankedDocument[] = [];
  const list = listOf(value);
  if (list === undefined) return undefined;
  for (const entry of list) {
    const { index, relevance_score: score } = fieldsOf(entry);
    if (
      typeof index !== "number" ||
      !Number.isInteger(index) ||
      typeof score !== "number" ||
      !Number.isFinite(score)
    )
      return undefined;
    ranked.push({ index, score });
  }
  return ranked;
}

/** Characters that make a token, as the contract's billing has it. */
const charactersPerToken = 4;

/** The documents, cut to `max_tokens_per_doc` for a vendor that has no such field. */
function cutDocuments({ documents, maxTokensPerDocument: most }: RerankRequest): {
  texts: readonly string[];
  losses: readonly Loss[];
} {
  if (most === undefined) return { texts: documents, losses: [] };
  const length = most * charactersPerToken;
  if (documents.every((text) => text.length <= length)) return { texts: documents, losses: [] };
  const reason = `the provider has no such field; documents were cut to ${charactersPerToken} characters a token`;
  return {
    texts: documents.map((text) => text.slice(0, length).toWellFormed()),
    losses: [{ field: "max_tokens_per_doc", reason }],
  };
}

/**
 * Cohere's `POST /v2/rerank`, billed by search units. Source:
 * https://docs.cohere.com/reference/rerank
 */
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

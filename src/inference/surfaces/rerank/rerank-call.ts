import { GatewayError } from "../../../platform/kernel/errors.ts";
import { routeDialect, type CatalogModel, type UpstreamDialect } from "../../catalog/model.ts";
import type {
  CallOrigin,
  InferenceCall,
  Adapter,
  AdaptedRoute,
} from "../../pipeline/inference-call.ts";
import { listOf, requireFields, type Fields } from "../read-fields.ts";
import { FieldReader } from "../field-reader.ts";
import { routingOf, surfaceCall, tokensOfTexts } from "../surface-call.ts";
import { assert } from "../../../platform/kernel/assert.ts";
import { usdFromNano } from "../../../platform/kernel/money.ts";
import { totalInputTokens } from "../../../platform/kernel/usage.ts";
import type { WholeAnswer } from "../../dialects/shared/exchange.ts";
import { adaptWhole } from "../whole-adapter.ts";
import type { Loss } from "../../canonical/request.ts";
import { withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import { fieldsOf, isObject } from "../../../platform/kernel/json/json-members.ts";

/** A document's index among those of the request, and its relevance. */
interface RankedDocument {
  index: number;
  score: number;
}

/** The parts of an answer that are used. */
interface RankedPart {
  ranked: readonly RankedDocument[];
  /**
   * Cohere's billing unit, one query with up to 100 documents; undefined where the provider has
   * none.
   */
  searchUnits?: number | undefined;
  id?: string;
}

/** The wire format of one vendor's ranking. Each dialect names its documentation page. */
export interface RerankDialect {
  encode(request: RerankRequest, upstreamModel: string): { body: object; losses: readonly Loss[] };
  /** Decodes an answer; undefined when the body is none of the dialect's. */
  decode(body: object): RankedPart | undefined;
}

/** Reads a list of `{index, relevance_score}`; undefined when it is malformed. */
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

/** Characters per token, as the contract bills them. */
const charactersPerToken = 4;

/** Returns the documents, cut to `max_tokens_per_doc` for a vendor that has no such field. */
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
    // The texts are known here, so they need not be returned.
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

/** Contract: "Size and count bounds". */
const documentsMax = 1_000;

/** A request to rank documents (contract: `POST /rerank`). */
export interface RerankRequest {
  /** The model as the caller wrote it. */
  model: string;
  query: string;
  /** At least one. */
  documents: readonly string[];
  /** The number of requested results; undefined means all. */
  topN: number | undefined;
  returnDocuments: boolean;
  maxTokensPerDocument: number | undefined;
}

/** Reads a body. Throws `missing_required_fields`, or `invalid_request` that names the field. */
export function readRerankRequest(body: Fields): RerankRequest {
  requireFields(body, ["model", "query", "documents"]);
  const fields = new FieldReader(body, "invalid_request");
  fields.checkSession();
  return {
    model: fields.text("model"),
    query: fields.text("query"),
    documents: documentsOf(body["documents"], fields),
    topN: fields.positive("top_n"),
    returnDocuments: fields.flag("return_documents"),
    maxTokensPerDocument: fields.positive("max_tokens_per_doc"),
  };
}

function documentsOf(value: unknown, fields: FieldReader): string[] {
  const list = listOf(value);
  if (list === undefined)
    throw fields.refusal("documents", "must be an array of strings or {text} objects.");
  if (list.length === 0) throw fields.refusal("documents", "must have at least one entry.");
  if (list.length > documentsMax)
    throw fields.refusal(
      "documents",
      `may have at most ${documentsMax} entries; these are ${list.length}.`,
    );
  return list.map((entry, index) => {
    const text = isObject(entry) ? fieldsOf(entry)["text"] : entry;
    if (typeof text !== "string")
      throw fields.refusal(
        `documents[${index}]`,
        "must be a string or an object with a string text.",
      );
    return text;
  });
}

/** Documents per search unit of the vendors, for holds. */
const documentsPerSearchUnit = 100;

/**
 * Returns the tokens that a request may be billed for, as far as is known before it is answered.
 */
export const expectedTokens = (request: RerankRequest): number =>
  billedTokens(request, Math.ceil(request.documents.length / documentsPerSearchUnit));

/** Builds the call of a request to rank documents. */
export const rerankCall = (
  origin: CallOrigin,
  { text, body, request }: { text: string; body: Fields; request: RerankRequest },
): InferenceCall =>
  surfaceCall(origin, {
    surface: "rerank",
    text,
    routing: routingOf(body, request.model),
    requirements: {
      texts: request.documents.length,
      parameters: [
        ...(request.topN === undefined ? [] : ["top_n"]),
        ...(request.maxTokensPerDocument === undefined ? [] : ["max_tokens_per_doc"]),
      ],
      inputTokens: expectedTokens(request),
    },
    adapt: (route) => adaptRerank(request, route),
    assertServes: assertReranks,
  });

function assertReranks({ id, surface }: CatalogModel): void {
  if (surface === "rerank") return;
  throw new GatewayError(
    "model_not_rerank_compatible",
    `The model ${id} does not rank documents; it serves ${surface}.`,
    {
      param: "model",
    },
  );
}

const dialects: Partial<Record<UpstreamDialect, RerankDialect>> = {
  "cohere-rerank": cohereRerank,
  "jina-rerank": jinaRerank,
  "voyage-rerank": voyageRerank,
};

/** The least tokens that a search unit bills (contract: `POST /rerank`, billing). */
const tokensPerSearchUnit = 1_000;

/**
 * Returns the tokens that a request is billed for: the estimate of its texts, but not less than its
 * search units.
 */
export const billedTokens = ({ query, documents }: RerankRequest, searchUnits = 0): number =>
  Math.max(tokensOfTexts([query, ...documents]), searchUnits * tokensPerSearchUnit);

/** Adapts a request to rank to a route. */
function adaptRerank(request: RerankRequest, { route }: AdaptedRoute): Adapter {
  const name = routeDialect(route, "rerank");
  const dialect = name && dialects[name];
  assert(dialect !== undefined, `${route.provider.id} does not rerank`);
  const { body, losses } = dialect.encode(request, route.upstreamModel);
  return adaptWhole<RankedPart>({
    bodies: [body],
    parallel: 1,
    losses,
    unusableCode: "upstream_error",
    read(answer) {
      const part = dialect.decode(answer);
      return part !== undefined && isRanking(part.ranked, request) ? part : undefined;
    },
    join: ([part]) => rerankAnswer(request, part as RankedPart),
  });
}

/**
 * Returns whether a list is a ranking: every document at most once, and as many as were requested.
 */
function isRanking(
  ranked: readonly RankedDocument[],
  { documents, topN = documents.length }: RerankRequest,
): boolean {
  const places = new Set(ranked.map(({ index }) => index));
  const known = ranked.every(({ index }) => index >= 0 && index < documents.length);
  return (
    known && places.size === ranked.length && ranked.length >= Math.min(topN, documents.length)
  );
}

function rerankAnswer(
  request: RerankRequest,
  { ranked, searchUnits, id }: RankedPart,
): WholeAnswer {
  const results = [...ranked]
    .sort((left, right) => right.score - left.score)
    .slice(0, request.topN)
    .map(({ index, score }) => ({
      index,
      relevance_score: Math.min(1, Math.max(0, score)),
      ...(request.returnDocuments && { document: { text: request.documents[index] ?? "" } }),
    }));
  return {
    upstreamId: id ?? null,
    finishReason: null,
    // Not the provider's count: the billed tokens follow from its texts and search units.
    metered: {
      usage: { inputTokens: billedTokens(request, searchUnits) },
      estimated: true,
      clamped: false,
    },
    outputCharacters: 0,
    hasContent: results.length > 0,
    spentOnReasoning: false,
    render({ id: shownId, metered, chargedNano }) {
      const tokens = totalInputTokens(metered.usage);
      return JSON.stringify({
        id: shownId,
        model: request.model,
        results,
        usage: {
          prompt_tokens: tokens,
          total_tokens: tokens,
          ...(searchUnits !== undefined && { search_units: searchUnits }),
          cost: usdFromNano(chargedNano),
        },
        // Where Cohere's clients look for it; the AI SDK's (@ai-sdk/cohere 4.0.52) refuses an
        // answer without a `meta`.
        meta: searchUnits === undefined ? {} : { billed_units: { search_units: searchUnits } },
      });
    },
  };
}

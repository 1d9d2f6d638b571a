import { GatewayError } from "../../../platform/kernel/errors.ts";
import { type CatalogModel, routeDialect, type UpstreamDialect } from "../../catalog/model.ts";
import type {
  CallOrigin,
  InferenceCall,
  Adapter,
  AdaptedRoute,
} from "../../pipeline/inference-call.ts";
import type { Fields } from "../read-fields.ts";
import { routingOf, surfaceCall, tokensOfTexts } from "../surface-call.ts";
import type { RerankRequest } from "./rerank-request.ts";
import { assert } from "../../../platform/kernel/assert.ts";
import { usdFromNano } from "../../../platform/kernel/money.ts";
import { totalInputTokens } from "../../../platform/kernel/usage.ts";
import type { WholeAnswer } from "../../dialects/passthrough.ts";
import { adaptWhole } from "../whole-adapter.ts";
import {
  cohereRerank,
  jinaRerank,
  type RankedDocument,
  type RankedPart,
  type RerankDialect,
  voyageRerank,
} from "./rerank-dialects.ts";

/** Documents that the vendors' search unit has, for what a request is held for. */
const documentsPerSearchUnit = 100;

/** Tokens that a request may be billed for, as far as is known before it is answered. */
export const expectedTokens = (request: RerankRequest): number =>
  billedTokens(request, Math.ceil(request.documents.length / documentsPerSearchUnit));

/** The call of a request to rank documents. */
export const rerankCall = (
  origin: CallOrigin,
  { text, body, request }: { text: string; body: Fields; request: RerankRequest },
): InferenceCall =>
  surfaceCall(origin, {
    surface: "rerank",
    text,
    routing: routingOf(body, request.model),
    asks: {
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

/** Tokens that a search unit bills at least (contract: `POST /rerank`, billing). */
const tokensPerSearchUnit = 1_000;

/**
 * Tokens that a request is billed for: its texts as estimated, but not less than its search units.
 */
export const billedTokens = ({ query, documents }: RerankRequest, searchUnits = 0): number =>
  Math.max(tokensOfTexts([query, ...documents]), searchUnits * tokensPerSearchUnit);

/** How a request to rank is written for a route. */
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

/** Every document at most once, and as many as were asked for. */
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
    // Not by the provider's count: what a request is billed for follows from its texts and search
    // units.
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

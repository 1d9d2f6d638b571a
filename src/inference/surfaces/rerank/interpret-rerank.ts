import { assert } from "../../../platform/lib/assert.ts";
import { usdFromNano } from "../../../platform/lib/money.ts";
import { totalInputTokens } from "../../canonical/usage.ts";
import { routeDialect } from "../../catalog/reachability.ts";
import type { UpstreamDialect } from "../../catalog/model.ts";
import type {
  Interpretation,
  InterpretedRoute,
  WholeAnswer,
} from "../../interpret/interpretation.ts";
import { tokensOfTexts } from "../surface-call.ts";
import { interpretWhole } from "../whole-interpretation.ts";
import { cohereRerank } from "./cohere-rerank.ts";
import { jinaRerank } from "./jina-rerank.ts";
import type { RankedDocument, RankedPart, RerankDialect } from "./rerank-dialect.ts";
import type { RerankRequest } from "./rerank-request.ts";
import { voyageRerank } from "./voyage-rerank.ts";

const dialects: Partial<Record<UpstreamDialect, RerankDialect>> = {
  "cohere-rerank": cohereRerank,
  "jina-rerank": jinaRerank,
  "voyage-rerank": voyageRerank,
};

/** Tokens that a search unit bills at least (contract: `POST /rerank`, billing). */
const tokensPerSearchUnit = 1_000;

/** Tokens that a request is billed for: its texts as estimated, but not less than its search units. */
export const billedTokens = ({ query, documents }: RerankRequest, searchUnits = 0): number =>
  Math.max(tokensOfTexts([query, ...documents]), searchUnits * tokensPerSearchUnit);

/** How a request to rank is told to a route. */
export function interpretRerank(
  request: RerankRequest,
  { route }: InterpretedRoute,
): Interpretation {
  const name = routeDialect(route, "rerank");
  const dialect = name && dialects[name];
  assert(dialect !== undefined, `${route.provider.id} does not rerank`);
  const { body, losses } = dialect.encode(request, route.upstreamModel);
  return interpretWhole<RankedPart>({
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
    // Whatever the provider counts: what a request is billed for follows from its texts and search units.
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
        // Where Cohere's clients look for it; the AI SDK's (@ai-sdk/cohere 4.0.52) refuses an answer without a `meta`.
        meta: searchUnits === undefined ? {} : { billed_units: { search_units: searchUnits } },
      });
    },
  };
}

import { assert } from "../../../platform/lib/assert.ts";
import type { Loss } from "../../canonical/loss.ts";
import { routeDialect } from "../../catalog/reachability.ts";
import type { UpstreamDialect } from "../../catalog/model.ts";
import type { Interpretation, InterpretedRoute } from "../../interpret/interpretation.ts";
import { interpretWhole } from "../whole-interpretation.ts";
import { cohereEmbed } from "./cohere-embed.ts";
import { EmbeddingAnswer } from "./embedding-answer.ts";
import type { EmbeddingDialect, EmbeddingPart } from "./embedding-dialect.ts";
import type { EmbeddingRequest } from "./embedding-request.ts";
import { googleEmbed } from "./google-embed.ts";
import { jinaEmbeddings } from "./jina-embeddings.ts";
import { openaiEmbeddings } from "./openai-embeddings.ts";
import { voyageEmbeddings } from "./voyage-embeddings.ts";

const dialects: Partial<Record<UpstreamDialect, EmbeddingDialect>> = {
  "openai-embeddings": openaiEmbeddings,
  "cohere-embed": cohereEmbed,
  "voyage-embeddings": voyageEmbeddings,
  "jina-embeddings": jinaEmbeddings,
  "google-embed": googleEmbed,
};

/** Batches of one request that are under way at once: more meets rate limits sooner than it gains. */
const batchesAtOnce = 4;

/** How a request for embeddings is told to a route; split where it takes fewer inputs at once. */
export function interpretEmbeddings(
  request: EmbeddingRequest,
  { route }: InterpretedRoute,
): Interpretation {
  const name = routeDialect(route, "embeddings");
  const dialect = name && dialects[name];
  assert(dialect !== undefined, `${route.provider.id} serves no embeddings`);
  const { inputs, format, formatNamed, dimensions, user, rest, cohere } = request;
  const batches = Array.from({ length: Math.ceil(inputs.length / dialect.inputsMax) }, (_, index) =>
    inputs.slice(index * dialect.inputsMax, (index + 1) * dialect.inputsMax),
  );
  return interpretWhole<EmbeddingPart>({
    bodies: batches.map((batch) =>
      dialect.encode({
        upstreamModel: route.upstreamModel,
        inputs: batch,
        format,
        formatNamed,
        dimensions,
        user,
        rest,
        cohere: cohere?.fields ?? {},
      }),
    ),
    parallel: batchesAtOnce,
    losses: lossesOf(request, dialect),
    unusableCode: "upstream_error",
    read(body, index) {
      const part = dialect.decode(body);
      return part?.vectors.length === batches[index]?.length ? part : undefined;
    },
    join: (parts) => new EmbeddingAnswer(request, parts),
  });
}

/** What a client of Cohere's says that the upstream has no field for. */
const lossesOf = ({ cohere }: EmbeddingRequest, { says = [] }: EmbeddingDialect): Loss[] =>
  Object.keys(cohere?.fields ?? {})
    .filter((field) => !says.includes(field))
    .map((field) => ({ field, reason: "the provider has no such field" }));

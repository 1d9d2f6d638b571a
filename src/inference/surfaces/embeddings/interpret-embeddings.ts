import { assert } from "../../../platform/lib/assert.ts";
import { usdFromNano } from "../../../platform/lib/money.ts";
import { totalInputTokens } from "../../canonical/usage.ts";
import { routeDialect } from "../../catalog/reachability.ts";
import type { UpstreamDialect } from "../../catalog/model.ts";
import type { Interpretation, InterpretedRoute, ShownAnswer, WholeAnswer } from "../../interpret/interpretation.ts";
import { sumUsage } from "../sum-usage.ts";
import { interpretWhole } from "../whole-interpretation.ts";
import { cohereEmbed } from "./cohere-embed.ts";
import type { EmbeddingDialect, EmbeddingPart, Modality } from "./embedding-dialect.ts";
import type { EmbeddingRequest } from "./embedding-request.ts";
import { googleEmbed } from "./google-embed.ts";
import { jinaEmbeddings } from "./jina-embeddings.ts";
import { openaiEmbeddings } from "./openai-embeddings.ts";
import { toFormat } from "./vector-format.ts";
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
export function interpretEmbeddings(request: EmbeddingRequest, { route }: InterpretedRoute): Interpretation {
  const name = routeDialect(route, "embeddings");
  const dialect = name && dialects[name];
  assert(dialect !== undefined, `${route.provider.id} serves no embeddings`);
  const { inputs, format, formatNamed, dimensions, user, rest } = request;
  const batches = Array.from({ length: Math.ceil(inputs.length / dialect.inputsMax) }, (_, index) =>
    inputs.slice(index * dialect.inputsMax, (index + 1) * dialect.inputsMax));
  return interpretWhole<EmbeddingPart>({
    bodies: batches.map((batch) => dialect.encode({
      upstreamModel: route.upstreamModel, inputs: batch, format, formatNamed, dimensions, user, rest,
    })),
    parallel: batchesAtOnce,
    losses: [],
    unusableCode: "upstream_error",
    read(body, index) {
      const part = dialect.decode(body);
      return part?.vectors.length === batches[index]?.length ? part : undefined;
    },
    join: (parts) => new EmbeddingAnswer(request, parts),
  });
}

/** Vectors in the order of the inputs, as OpenAI's clients read them. */
class EmbeddingAnswer implements WholeAnswer {
  readonly upstreamId: string | null;
  readonly finishReason = null;
  readonly metered: WholeAnswer["metered"];
  readonly outputCharacters = 0;
  readonly hasContent = true;
  readonly spentOnReasoning = false;
  private readonly request: EmbeddingRequest;
  private readonly parts: readonly EmbeddingPart[];
  private dataText: string | undefined;

  constructor(request: EmbeddingRequest, parts: readonly EmbeddingPart[]) {
    this.request = request;
    this.parts = parts;
    this.metered = sumUsage(parts.map(({ metered }) => metered));
    this.upstreamId = parts[0]?.id ?? null;
  }

  render({ id, model, metered, chargedNano, free }: ShownAnswer): string {
    const tokens = totalInputTokens(metered.usage);
    const usage = {
      prompt_tokens: tokens,
      total_tokens: tokens,
      ...(free === true ? {} : { cost: usdFromNano(chargedNano) }),
      ...detailsOf(this.parts),
    };
    // The id stands first, so that a kept answer can be given out again under another one.
    return `{"id":${JSON.stringify(id)},"object":"list","data":${this.data()},"model":${JSON.stringify(model)},`
      + `"usage":${JSON.stringify(usage)}}`;
  }

  /** Written once: an answer that is kept is rendered twice. */
  private data(): string {
    return (this.dataText ??= JSON.stringify(this.parts.flatMap(({ vectors }) => vectors).map((vector, index) => ({
      object: "embedding", index, embedding: toFormat(vector, this.request.format),
    }))));
  }
}

/** Only inputs of two kinds or more are told apart, and only where the upstream does. */
function detailsOf(parts: readonly EmbeddingPart[]): { prompt_tokens_details?: Partial<Record<Modality, number>> } {
  const sum: Partial<Record<Modality, number>> = {};
  for (const { modalities = {} } of parts) {
    for (const [name, count] of Object.entries(modalities) as [Modality, number][]) sum[name] = (sum[name] ?? 0) + count;
  }
  return Object.keys(sum).length < 2 ? {} : { prompt_tokens_details: sum };
}

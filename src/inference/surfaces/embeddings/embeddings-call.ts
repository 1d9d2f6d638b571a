import { GatewayError } from "../../../platform/kernel/errors.ts";
import { type CatalogModel, routeDialect, type UpstreamDialect } from "../../catalog/model.ts";
import type {
  CallOrigin,
  InferenceCall,
  Adapter,
  AdaptedRoute,
} from "../../pipeline/inference-call.ts";
import type { SortKey } from "../../routing/provider-preferences.ts";
import type { Fields } from "../read-fields.ts";
import { routingOf, surfaceCall } from "../surface-call.ts";
import {
  embeddingTokens,
  type EmbeddingRequest,
  type CohereWishes,
  toFormat,
  type VectorFormat,
} from "./embedding-request.ts";
import { assert } from "../../../platform/kernel/assert.ts";
import type { Loss } from "../../canonical/request.ts";
import { adaptWhole, sumUsage } from "../whole-adapter.ts";
import { cohereEmbed } from "./cohere-embed.ts";
import type { EmbeddingDialect, EmbeddingPart, Modality } from "./embedding-dialect.ts";
import { googleEmbed } from "./google-embed.ts";
import { jinaEmbeddings } from "./jina-embeddings.ts";
import { openaiEmbeddings } from "./openai-embeddings.ts";
import { voyageEmbeddings } from "./voyage-embeddings.ts";
import { usdFromNano } from "../../../platform/kernel/money.ts";
import { totalInputTokens } from "../../../platform/kernel/usage.ts";
import type { ShownAnswer, WholeAnswer } from "../../dialects/shared/exchange.ts";

/** A request for embeddings as its endpoint has read it. */
interface ReadEmbeddings {
  text: string;
  body: Fields;
  request: EmbeddingRequest;
  /** The criterion that `X-Routing-Strategy` requests. */
  sort: SortKey | undefined;
}

/** Builds the call of a request for embeddings. */
export function embeddingsCall(
  origin: CallOrigin,
  { text, body, request, sort }: ReadEmbeddings,
): InferenceCall {
  return surfaceCall(origin, {
    surface: "embeddings",
    text,
    routing: routingOf(body, request.model),
    sort,
    requirements: {
      texts: request.inputs.length,
      parameters: request.dimensions === undefined ? [] : ["dimensions"],
      inputTokens: embeddingTokens(request.inputs),
    },
    adapt: (route) => adaptEmbeddings(request, route),
    assertServes: assertEmbeds,
  });
}

/** Throws `model_unavailable` for models that do not serve embeddings. */
export function assertEmbeds({ id, surface }: CatalogModel): void {
  if (surface === "embeddings") return;
  const message = `The model ${id} makes no embeddings; it serves ${surface}. GET /models?category=embedding lists those that do.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}

const dialects: Partial<Record<UpstreamDialect, EmbeddingDialect>> = {
  "openai-embeddings": openaiEmbeddings,
  "cohere-embed": cohereEmbed,
  "voyage-embeddings": voyageEmbeddings,
  "jina-embeddings": jinaEmbeddings,
  "google-embed": googleEmbed,
};

/** The most batches of one request in flight: more would meet rate limits sooner than it gains. */
const batchesAtOnce = 4;

/**
 * Adapts a request for embeddings to a route; it is split where the route accepts fewer inputs at
 * once.
 */
function adaptEmbeddings(request: EmbeddingRequest, { route }: AdaptedRoute): Adapter {
  const name = routeDialect(route, "embeddings");
  const dialect = name && dialects[name];
  assert(dialect !== undefined, `${route.provider.id} serves no embeddings`);
  const { inputs, format, formatNamed, dimensions, user, rest, cohere } = request;
  const batches = Array.from({ length: Math.ceil(inputs.length / dialect.inputsMax) }, (_, index) =>
    inputs.slice(index * dialect.inputsMax, (index + 1) * dialect.inputsMax),
  );
  return adaptWhole<EmbeddingPart>({
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

/** Returns the fields of a client of Cohere's that the upstream does not have. */
const lossesOf = ({ cohere }: EmbeddingRequest, { says = [] }: EmbeddingDialect): Loss[] =>
  Object.keys(cohere?.fields ?? {})
    .filter((field) => !says.includes(field))
    .map((field) => ({ field, reason: "the provider has no such field" }));

/** Vectors in the order of the inputs, in the form of OpenAI's clients or Cohere's. */
class EmbeddingAnswer implements WholeAnswer {
  readonly upstreamId: string | null;
  readonly finishReason = null;
  readonly metered: WholeAnswer["metered"];
  readonly outputCharacters = 0;
  readonly hasContent = true;
  readonly spentOnReasoning = false;
  private dataText: string | undefined;

  constructor(
    private readonly request: EmbeddingRequest,
    private readonly parts: readonly EmbeddingPart[],
  ) {
    this.metered = sumUsage(parts.map(({ metered }) => metered));
    this.upstreamId = parts[0]?.id ?? null;
  }

  render({ id, model, metered, chargedNano, free }: ShownAnswer): string {
    const tokens = totalInputTokens(metered.usage);
    const usage = JSON.stringify({
      prompt_tokens: tokens,
      total_tokens: tokens,
      ...(free === true ? {} : { cost: usdFromNano(chargedNano) }),
      ...detailsOf(this.parts),
    });
    // The id comes first, so that a kept answer can be returned again under another one.
    const begin = `{"id":${JSON.stringify(id)}`;
    const { cohere } = this.request;
    if (cohere === undefined) {
      return `${begin},"object":"list","data":${this.data()},"model":${JSON.stringify(model)},"usage":${usage}}`;
    }
    const { inputTokens = 0, inputImageTokens } = metered.usage;
    const meta = {
      api_version: { version: "2" },
      billed_units: {
        input_tokens: inputTokens,
        ...(inputImageTokens !== undefined && { image_tokens: inputImageTokens }),
      },
    };
    return (
      `${begin},"response_type":"embeddings_by_type","embeddings":${this.byType(cohere)},` +
      `"texts":${JSON.stringify(cohere.texts ?? [])},"meta":${JSON.stringify(meta)},"usage":${usage}}`
    );
  }

  private vectorsIn(format: VectorFormat): readonly unknown[] {
    return this.parts.flatMap(({ vectors }) => vectors).map((vector) => toFormat(vector, format));
  }

  /** Returns the data, serialised once like `byType`: an answer that is kept is rendered twice. */
  private data(): string {
    return (this.dataText ??= JSON.stringify(
      this.vectorsIn(this.request.format).map((embedding, index) => ({
        object: "embedding",
        index,
        embedding,
      })),
    ));
  }

  private byType({ formats }: CohereWishes): string {
    return (this.dataText ??= JSON.stringify(
      Object.fromEntries(formats.map((format) => [format, this.vectorsIn(format)])),
    ));
  }
}

/**
 * Returns the details by kind of input, only for two kinds or more and where the upstream
 * distinguishes them.
 */
function detailsOf(parts: readonly EmbeddingPart[]): {
  prompt_tokens_details?: Partial<Record<Modality, number>>;
} {
  const sum: Partial<Record<Modality, number>> = {};
  for (const { modalities = {} } of parts) {
    for (const [name, count] of Object.entries(modalities) as [Modality, number][])
      sum[name] = (sum[name] ?? 0) + count;
  }
  return Object.keys(sum).length < 2 ? {} : { prompt_tokens_details: sum };
}

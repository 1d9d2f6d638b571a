import { usdFromNano } from "../../../platform/lib/money.ts";
import { totalInputTokens } from "../../canonical/usage.ts";
import type { ShownAnswer, WholeAnswer } from "../../interpret/interpretation.ts";
import { sumUsage } from "../sum-usage.ts";
import type { EmbeddingPart, Modality } from "./embedding-dialect.ts";
import type { CohereWishes, EmbeddingRequest } from "./embedding-request.ts";
import { toFormat, type VectorFormat } from "./vector-format.ts";

/** Vectors in the order of the inputs, as OpenAI's clients read them, or Cohere's. */
export class EmbeddingAnswer implements WholeAnswer {
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
    const usage = JSON.stringify({
      prompt_tokens: tokens,
      total_tokens: tokens,
      ...(free === true ? {} : { cost: usdFromNano(chargedNano) }),
      ...detailsOf(this.parts),
    });
    // The id stands first, so that a kept answer can be given out again under another one.
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

  /** Written once, as `byType` is: an answer that is kept is rendered twice. */
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

/** Only inputs of two kinds or more are told apart, and only where the upstream does. */
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

import type { CatalogModel, Surface } from "../catalog/model.ts";
import type {
  CallOrigin,
  InferenceCall,
  RequestRequirements,
  Adapter,
  AdaptedRoute,
} from "../pipeline/inference-call.ts";
import type { SortKey } from "../routing/provider-preferences.ts";
import type { Fields } from "./read-fields.ts";

/** A request of a surface without streams, read and checked. */
export interface SurfaceRequest {
  surface: Surface;
  /**
   * What the surface is called in records and metrics, where it is another than that of its models.
   */
  recordedAs?: string;
  /** The body as it came. */
  text: string;
  /** What routing reads of the body: `model`, `provider`, `trace`. */
  routing: Fields;
  requirements: SurfaceRequirements;
  sort?: SortKey | undefined;
  unbilled?: true;
  adapt(route: AdaptedRoute): Adapter;
  /** Throws `GatewayError` for a model that the surface does not serve. */
  assertServes(model: CatalogModel): void;
}

/** What such a request asks of routing and holds; what is generated, if anything, has a bound. */
interface SurfaceRequirements {
  /** Texts that the model sees one by one. */
  texts: number;
  /** Output tokens that one text can cost; absent where nothing is generated. */
  outputTokensMax?: number;
  /** Names of the declared parameters that the request sets. */
  parameters?: readonly string[];
  inputTokens: number;
}

const requirementsOf = ({
  texts,
  outputTokensMax = 0,
  parameters = [],
  inputTokens,
}: SurfaceRequirements): RequestRequirements => ({
  stream: false,
  maxOutputTokens: outputTokensMax,
  neededOutputTokens: undefined,
  wishedOutputTokens: undefined,
  choices: texts,
  isUncut: true,
  texts,
  wishedParameters: [],
  needsTools: false,
  parameters: () => [...parameters],
  estimateInputTokens: () => inputTokens,
});

/** The call of a request on a surface without streams. */
export const surfaceCall = (
  origin: CallOrigin,
  { requirements, routing, ...request }: SurfaceRequest,
): InferenceCall => ({
  ...origin,
  recordedAs: request.surface,
  ...request,
  body: routing,
  requirements: requirementsOf(requirements),
});

/** The members of a body that routing and the record of the charge look at. */
export const routingOf = (body: Fields, model: string): Fields => ({
  model,
  ...(body["provider"] !== undefined && { provider: body["provider"] }),
  ...(body["trace"] !== undefined && { trace: body["trace"] }),
});

/**
 * Characters that make a token, on the average of the field's tokenizers (contract: rerank
 * billing).
 */
const charactersPerToken = 4;

/** The estimate of the tokens of texts. */
export const tokensOfTexts = (texts: Iterable<string>): number => {
  let characters = 0;
  for (const text of texts) characters += text.length;
  return Math.ceil(characters / charactersPerToken);
};

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

/** A request of a surface without streams, parsed and checked. */
export interface SurfaceRequest {
  surface: Surface;
  /** The surface's name in records and metrics, where it differs from that of its models. */
  recordedAs?: string;
  /** The body as it was received. */
  text: string;
  /** The members of the body that routing reads: `model`, `provider`, `trace`. */
  routing: Fields;
  requirements: SurfaceRequirements;
  sort?: SortKey | undefined;
  unbilled?: true;
  adapt(route: AdaptedRoute): Adapter;
  /** Throws `GatewayError` for a model that the surface does not serve. */
  assertServes(model: CatalogModel): void;
}

/** The requirements of such a request on routing and holds. Its output, if any, is bounded. */
interface SurfaceRequirements {
  /** The number of texts that the model reads one by one. */
  texts: number;
  /** The most output tokens that one text can cost; absent where nothing is generated. */
  outputTokensMax?: number;
  /** The names of the declared parameters that the request sets. */
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

/** Builds the call of a request on a surface without streams. */
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

/** Returns the members of a body that routing and the record of the charge read. */
export const routingOf = (body: Fields, model: string): Fields => ({
  model,
  ...(body["provider"] !== undefined && { provider: body["provider"] }),
  ...(body["trace"] !== undefined && { trace: body["trace"] }),
  ...(body["user"] !== undefined && { user: body["user"] }),
});

/** Characters per token, as an average of common tokenizers (contract: rerank billing). */
const charactersPerToken = 4;

/** Estimates the tokens of texts. */
export const tokensOfTexts = (texts: Iterable<string>): number => {
  let characters = 0;
  for (const text of texts) characters += text.length;
  return Math.ceil(characters / charactersPerToken);
};

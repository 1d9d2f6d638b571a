import { dataPolicyOf, type CatalogModel, type ReasoningLevels, type UpstreamRoute } from "./model.ts";
import {
  byokPricing, cheapestPrice, managedPricing, memberPricing, routePricing, type ModelPricing,
} from "./model-pricing.ts";
import { present } from "./present.ts";

/** A model as `GET /models` shows it. */
export interface ModelObject {
  id: string;
  object: "model";
  display_name: string;
  provider: string;
  /** The same under OpenAI's name: typed clients refuse a list without it. */
  owned_by: string;
  providers: string[];
  category: CatalogModel["category"];
  context_length: number;
  pricing: ModelPricing;
  capabilities: readonly string[];
  links: { details: string; metrics: string };
  reasoning?: ReasoningLevels;
  supported_parameters?: readonly string[];
  top_provider: { max_completion_tokens: number | null };
  /** Empty for routing presets: the routes are those of their members. */
  per_upstream: UpstreamObject[];
  /** Ids of the models that a routing preset chooses from, in the order in which it tries them. */
  members?: string[];
  description?: string;
  /** Unix seconds, 0 when unknown: typed clients refuse a list without it. */
  created: number;
  coming_soon?: true;
}

/** A route as a model object shows it. */
export interface UpstreamObject {
  provider: string;
  reasoning?: ReasoningLevels;
  features: { reasoning?: boolean };
  supported_parameters?: readonly string[];
  context: { context_length?: number; max_completion_tokens?: number };
  pricing?: Record<string, number>;
  quantization?: string;
  data_policy: { zdr?: boolean; data_collection?: "allow" | "deny"; distillable_text?: boolean };
  billing?: "byok";
}

/** How a caller sees a model. */
export interface ModelView {
  /** Whether the gateway serves and bills this caller through a route; routes that it does not are BYOK. */
  reachable(route: UpstreamRoute): boolean;
}

/** A catalog model in the contract's shape. */
export function modelObject(model: CatalogModel, { reachable }: ModelView): ModelObject {
  // What is announced is served by nobody yet; its price is the one that it was announced with.
  const reached = model.routes.filter(model.comingSoon ? ({ price }) => price !== undefined : reachable);
  const { router } = model;
  const details = `/api/v1/models/${model.id}`;
  return present({
    id: model.id,
    object: "model" as const,
    display_name: model.displayName,
    provider: model.owner,
    owned_by: model.owner,
    providers: [...new Set(model.routes.map(({ provider }) => provider.id))],
    category: model.category,
    context_length: model.contextLength,
    pricing: pricingOf(model, reached),
    capabilities: model.capabilities,
    links: { details, metrics: `${details}/metrics` },
    reasoning: model.reasoning,
    supported_parameters: model.supportedParameters,
    top_provider: { max_completion_tokens: strictestCap(reached.length > 0 ? reached : model.routes) },
    per_upstream: router !== undefined ? [] : model.routes.map((route) => upstreamObject(route, reached.includes(route))),
    members: router?.members.map(({ id }) => id),
    description: model.description,
    created: Math.floor(model.addedAtMs / 1000),
    coming_soon: model.comingSoon ? true as const : undefined,
  });
}

function pricingOf({ routes, router }: CatalogModel, reached: readonly UpstreamRoute[]): ModelPricing {
  const price = cheapestPrice(reached);
  // A preset without members has no price, and nobody else's bill either.
  if (router !== undefined && (price !== undefined || routes.length === 0)) return memberPricing(reached);
  return price === undefined ? byokPricing(cheapestPrice(routes)) : managedPricing(price);
}

function upstreamObject(route: UpstreamRoute, reached: boolean): UpstreamObject {
  const { zdr, dataCollection, distillableText } = dataPolicyOf(route);
  return present({
    provider: route.provider.id,
    reasoning: route.reasoning,
    features: present({ reasoning: route.reasoningFeature }),
    supported_parameters: route.supportedParameters,
    context: present({
      context_length: route.contextLength,
      max_completion_tokens: route.maxCompletionTokens,
    }),
    pricing: route.price === undefined ? undefined : routePricing(route.price),
    quantization: route.quantization,
    data_policy: present({ zdr, data_collection: dataCollection, distillable_text: distillableText }),
    billing: reached ? undefined : "byok" as const,
  });
}

/** The lowest cap that any route declares, null when none does. */
function strictestCap(routes: readonly UpstreamRoute[]): number | null {
  const caps = routes.flatMap(({ maxCompletionTokens }) => maxCompletionTokens ?? []);
  return caps.length === 0 ? null : Math.min(...caps);
}

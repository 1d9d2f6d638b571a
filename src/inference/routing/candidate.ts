import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";

/** One way to serve a request: a model on a provider, with the reason for its place in the order. */
export interface Candidate {
  model: CatalogModel;
  route: UpstreamRoute;
  /** 0 for the model that was asked for, then its fallbacks in order. */
  modelIndex: number;
  reason: string;
}

/** A route that a rule took out, and which rule. */
export interface LeftOut {
  provider: string;
  model: string;
  rule: string;
}

/** The facts of a request that routing looks at. */
export interface RoutingRequest {
  /** Catalog models in the order in which they may serve. */
  models: readonly CatalogModel[];
  preferences: ProviderFilter;
  needsTools: boolean;
  /** Names of the parameters that the request sets. */
  parameters: readonly string[];
  maxOutputTokens: number | undefined;
}

/** Preferences after the request's suffix and headers were merged in. */
export interface ProviderFilter {
  order?: readonly string[];
  only?: readonly string[];
  ignore?: readonly string[];
  allowFallbacks: boolean;
  sort?: "price" | "throughput" | "latency" | "exacto";
  /** `none` sorts the routes of all models together. */
  partition: "model" | "none";
  maxPromptPicoUsd?: bigint;
  maxCompletionPicoUsd?: bigint;
  quantizations?: readonly string[];
  zdr?: boolean;
  denyDataCollection?: boolean;
  distillableText?: boolean;
  requireParameters?: boolean;
  requireParams?: readonly string[];
  minContext?: number;
}

/** Whether a name in `order`, `only` or `ignore` means the provider: its slug or its display name. */
export function namesProvider(name: string, route: UpstreamRoute): boolean {
  const wanted = name.toLowerCase();
  return route.provider.id.toLowerCase() === wanted || route.provider.name.toLowerCase() === wanted;
}

/** Pico-USD for one input and one output token: what "price" means where routes are compared. */
export function comparablePrice(route: UpstreamRoute): number {
  const base = route.price?.base;
  return base === undefined ? Number.POSITIVE_INFINITY : Number(base.inputTokens + base.outputTokens);
}

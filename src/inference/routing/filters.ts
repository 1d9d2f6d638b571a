import type { Candidate, ProviderFilter, RoutingRequest } from "./candidate.ts";
import { namesProvider } from "./candidate.ts";

/** A hard rule: routes that fail it cannot serve. Pure; `applies` lets most requests skip most rules. */
export interface RouteRule {
  name: string;
  applies(request: RoutingRequest): boolean;
  keeps(candidate: Candidate, request: RoutingRequest): boolean;
}

const rule = (
  name: string,
  applies: (filter: ProviderFilter, request: RoutingRequest) => boolean,
  keeps: (candidate: Candidate, request: RoutingRequest) => boolean,
): RouteRule => ({ name, applies: (request) => applies(request.preferences, request), keeps });

const supports = ({ model, route }: Candidate, parameter: string): boolean => {
  const declared = route.supportedParameters ?? model.supportedParameters;
  return declared === undefined || declared.length === 0 || declared.includes(parameter);
};

/** The hard rules of the provider object, each a line; their order is the order of the explanation. */
export const routeRules: readonly RouteRule[] = [
  rule("only", (filter) => filter.only !== undefined, ({ route }, { preferences }) =>
    preferences.only?.some((name) => namesProvider(name, route)) ?? true),
  rule("ignore", (filter) => filter.ignore !== undefined, ({ route }, { preferences }) =>
    !preferences.ignore?.some((name) => namesProvider(name, route))),
  rule("max_price", (filter) => filter.maxPromptPicoUsd !== undefined || filter.maxCompletionPicoUsd !== undefined,
    ({ route }, { preferences }) => {
      const base = route.price?.base;
      if (base === undefined) return false;
      const { maxPromptPicoUsd, maxCompletionPicoUsd } = preferences;
      return (maxPromptPicoUsd === undefined || base.inputTokens <= maxPromptPicoUsd)
        && (maxCompletionPicoUsd === undefined || base.outputTokens <= maxCompletionPicoUsd);
    }),
  rule("quantizations", (filter) => filter.quantizations !== undefined, ({ route }, { preferences }) =>
    route.quantization !== undefined && (preferences.quantizations?.includes(route.quantization) ?? true)),
  rule("zdr", (filter) => filter.zdr === true, ({ route }) => route.provider.dataPolicy.zdr === true),
  rule("data_collection", (filter) => filter.denyDataCollection === true, ({ route }) =>
    route.provider.dataPolicy.dataCollection === "deny" || route.provider.dataPolicy.zdr === true),
  rule("enforce_distillable_text", (filter) => filter.distillableText === true, ({ route }) =>
    route.provider.dataPolicy.distillableText === true),
  rule("min_context", (filter) => filter.minContext !== undefined, ({ model, route }, { preferences }) =>
    (route.contextLength ?? model.contextLength) >= (preferences.minContext ?? 0)),
  rule("require_parameters", (filter, { parameters }) => filter.requireParameters === true && parameters.length > 0,
    (candidate, { parameters }) => parameters.every((parameter) => supports(candidate, parameter))),
  rule("require_params", (filter) => filter.requireParams !== undefined, (candidate, { preferences }) =>
    preferences.requireParams?.every((parameter) => supports(candidate, parameter)) ?? true),
  rule("tools", (_, { needsTools }) => needsTools, (candidate) => supports(candidate, "tools")),
  rule("max_tokens", (_, { maxOutputTokens }) => maxOutputTokens !== undefined, ({ route }, { maxOutputTokens }) =>
    route.maxCompletionTokens === undefined || (maxOutputTokens ?? 0) <= route.maxCompletionTokens),
];

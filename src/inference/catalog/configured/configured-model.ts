import type { PriceRow } from "../../../billing/ledger/price.ts";
import { configuredDataPolicy } from "./configure-provider.ts";
import type { ConfiguredModel } from "./configured-provider.ts";
import {
  categoryOf,
  deviatingDialect,
  ownerOf,
  configurationVersion,
  configuredPriceRow,
  freePriceRow,
  priceVersion,
} from "../fact-model.ts";
import type { CatalogModel, Provider, ReasoningLevels, Surface, UpstreamRoute } from "../model.ts";
import { present } from "../present.ts";

/** Where a configured model goes. */
export interface ConfiguredPlace {
  provider: Provider;
  /** The model as the catalog has it so far. */
  known: CatalogModel | undefined;
  /**
   * True when the operator chose the provider's dialect, so that the vendor's deviations say
   * nothing.
   */
  redirected: boolean;
  /** When the model counts as added where no other source says it. */
  addedAtMs: number;
}

/**
 * The model with the configured route in it; what the entry says of the model wins over what was
 * known.
 */
export function configureModel(entry: ConfiguredModel, place: ConfiguredPlace): CatalogModel {
  const { known, provider } = place;
  const surface = entry.surface ?? known?.surface ?? "chat";
  const route = configuredRoute(entry, place);
  const others = (known?.routes ?? []).filter((other) => other.provider.id !== provider.id);
  return present({
    ...known,
    id: entry.id,
    displayName:
      entry.display_name ?? known?.displayName ?? entry.id.slice(entry.id.indexOf("/") + 1),
    owner: ownerOf(entry.id),
    surface,
    category: categoryOf(surface),
    contextLength: entry.context_length ?? known?.contextLength ?? 0,
    capabilities: withReasoning(
      entry,
      entry.capabilities ?? known?.capabilities ?? [capabilityOf(surface)],
    ),
    supportedParameters: declaredOn([route, ...others]),
    reasoning: reasoningOf(entry) ?? known?.reasoning,
    addedAtMs: known?.addedAtMs ?? place.addedAtMs,
    comingSoon: entry.coming_soon ?? known?.comingSoon,
    routes: [route, ...others],
  });
}

/**
 * What any of the routes declares, in whichever order they were configured; undefined where none
 * declares anything.
 */
function declaredOn(routes: readonly UpstreamRoute[]): readonly string[] | undefined {
  const lists = routes.flatMap(({ supportedParameters: list }) =>
    list === undefined ? [] : [list],
  );
  return lists.length === 0 ? undefined : [...new Set(lists.flat())];
}

function configuredRoute(entry: ConfiguredModel, place: ConfiguredPlace): UpstreamRoute {
  const { known, provider, redirected } = place;
  const old = known?.routes.find((route) => route.provider.id === provider.id);
  const upstreamModel =
    entry.upstream_model ?? old?.upstreamModel ?? entry.id.slice(entry.id.indexOf("/") + 1);
  const deviation = redirected ? undefined : deviatingDialect(provider.id, upstreamModel);
  return present({
    ...old,
    provider,
    upstreamModel,
    dialect: deviation === "none" ? undefined : deviation,
    price: priceOf(entry, { provider, old: old?.price }),
    contextLength: entry.context_length ?? old?.contextLength,
    maxCompletionTokens: entry.max_completion_tokens ?? old?.maxCompletionTokens,
    quantization: entry.quantization ?? old?.quantization,
    supportedParameters: entry.supported_parameters ?? old?.supportedParameters,
    reasoning: reasoningOf(entry) ?? old?.reasoning,
    reasoningFeature:
      entry.reasoning !== undefined ||
      (entry.capabilities?.includes("reasoning") ?? old?.reasoningFeature),
    dataPolicy:
      entry.data_policy === undefined ? old?.dataPolicy : configuredDataPolicy(entry.data_policy),
  });
}

/**
 * A price that was not given is no price: the route cannot be billed and serves callers with their
 * own key. What is named free is free, and so is a server of the operator's own.
 */
function priceOf(
  { id, pricing }: ConfiguredModel,
  { provider, old }: { provider: Provider; old: PriceRow | undefined },
): PriceRow | undefined {
  const version = priceVersion(provider.id, id, configurationVersion(pricing));
  if (pricing !== undefined) return configuredPriceRow(version, pricing);
  if (old !== undefined) return old;
  return id.endsWith(":free") || provider.local ? freePriceRow(version) : undefined;
}

/**
 * A model whose efforts are declared reasons, whether or not the list of its capabilities says so.
 */
const withReasoning = (
  { reasoning }: ConfiguredModel,
  capabilities: readonly string[],
): readonly string[] =>
  reasoning === undefined || capabilities.includes("reasoning")
    ? capabilities
    : [...capabilities, "reasoning"];

const reasoningOf = ({ reasoning }: ConfiguredModel): ReasoningLevels | undefined =>
  reasoning === undefined
    ? undefined
    : present({ levels: reasoning.levels, default: reasoning.default });

const capabilities: Readonly<Record<Surface, string>> = {
  chat: "chat",
  embeddings: "embeddings",
  rerank: "rerank",
  moderations: "moderation",
  decisions: "decisions",
  documents: "documents",
};

const capabilityOf = (surface: Surface): string => capabilities[surface];

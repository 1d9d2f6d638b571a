import type { AliasTarget } from "../../platform/kernel/models/model-alias.ts";
import { providerDefinitions } from "../providers/index.ts";
import type { Environment } from "../providers/provider-definition.ts";
import { readBundledFacts, type CatalogFacts } from "./catalog-facts.ts";
import {
  configureModel,
  configureProvider,
  knownProvider,
} from "./configured/configure-provider.ts";
import type { ConfiguredPricing, ConfiguredProvider } from "./configured/configured-provider.ts";
import type { FactContext } from "./fact-model.ts";
import { knownModels } from "./known-models.ts";
import type { CatalogModel, CatalogSnapshot, Provider } from "./model.ts";
import { routerModels, type ConfiguredRouters } from "./router-models.ts";
import { familiesOf, vendorNames } from "./names/vendor-names.ts";
import { UnknownModels } from "./names/unknown-models.ts";

/** The sources of a catalog. */
export interface CatalogOptions {
  environment: Environment;
  /** Parsed `providers:` entries of the configuration, in their order. */
  configuredProviders: readonly ConfiguredProvider[];
  /** The built-in simulated provider, where it is on. */
  simulatedProvider?: ConfiguredProvider;
  /** Pools of the routing presets; presets without one choose from the reachable models. */
  configuredRouters?: ConfiguredRouters;
  /** The operator's own names of models. */
  configuredAliases?: Readonly<Record<string, AliasTarget>>;
  /** When models that only the configuration knows count as added, unless `previous` has them. */
  nowMs: number;
  /** The catalog that this one is to replace. */
  previous?: CatalogSnapshot;
  /**
   * The price of models that no catalog knows and that are sent to their makers; absent refuses
   * them.
   */
  unknownModelPricing?: ConfiguredPricing | undefined;
  /** Default: the facts that ship with the project. */
  facts?: CatalogFacts;
  /** Whether a provider offers only those models that its entry lists. */
  onlyListed?: boolean;
}

/**
 * Builds the catalog of this process: the facts of the built-in providers, overridden by the
 * configuration. A built-in server of the operator's own machine is included only when its address
 * is set.
 */
export function buildCatalog(options: CatalogOptions): CatalogSnapshot {
  const facts = options.facts ?? readBundledFacts();
  const redirected = new Set(
    options.configuredProviders.filter(({ dialect }) => dialect !== undefined).map(({ id }) => id),
  );
  const { models: known, providers } = knownModels({
    facts,
    providers: buildProviders(options),
    redirected,
  });
  for (const entry of entriesOf(options))
    addModels(known, entry, { options, providers, redirected });
  const models = options.onlyListed === true ? listedModels(known, entriesOf(options)) : known;
  const aliases = new Map(
    Object.entries(facts.aliases).filter(([alias, id]) => models.has(id) && !models.has(alias)),
  );
  for (const router of routerModels({
    models,
    aliases,
    configured: options.configuredRouters ?? {},
  }))
    models.set(router.id, router);
  let families: Map<string, string[]> | undefined;
  return {
    version: `${facts.source.split(" ")[0]} ${facts.snapshot}`,
    models: new Map([...models].sort(([left], [right]) => (left < right ? -1 : 1))),
    providers,
    aliases: new Map([...aliases, ...vendorNames(models, aliases)]),
    named: new Map(
      Object.entries(options.configuredAliases ?? {}).map(([name, target]) => [
        name.toLowerCase(),
        target,
      ]),
    ),
    // Only an unknown name asks for them.
    get families() {
      return (families ??= familiesOf(models.keys()));
    },
    ...(options.unknownModelPricing && {
      unknown: new UnknownModels({ providers, pricing: options.unknownModelPricing }),
    }),
  };
}

const entriesOf = ({
  configuredProviders,
  simulatedProvider,
}: CatalogOptions): ConfiguredProvider[] => [
  ...configuredProviders,
  ...(simulatedProvider === undefined ? [] : [simulatedProvider]),
];

/** Returns the providers of a catalog, which do not depend on its facts. */
export function buildProviders(options: CatalogOptions): Map<string, Provider> {
  const { environment, configuredProviders, simulatedProvider } = options;
  const providers = new Map<string, Provider>();
  for (const definition of providerDefinitions) {
    const provider = knownProvider(definition, environment);
    const isConfigured = configuredProviders.some(({ id }) => id === definition.id);
    const isActive = !definition.local || provider.baseUrl !== undefined || isConfigured;
    if (isActive) providers.set(provider.id, provider);
  }
  for (const entry of configuredProviders) {
    providers.set(
      entry.id,
      configureProvider(entry, { known: providers.get(entry.id), environment }),
    );
  }
  if (simulatedProvider !== undefined) {
    const provider = configureProvider(simulatedProvider, { known: undefined, environment });
    providers.set(provider.id, { ...provider, simulated: true });
  }
  return providers;
}

function addModels(
  models: Map<string, CatalogModel>,
  entry: ConfiguredProvider,
  { providers, redirected, options }: Omit<FactContext, "priceOf"> & { options: CatalogOptions },
): void {
  const provider = providers.get(entry.id);
  if (provider === undefined) return;
  for (const model of entry.models ?? []) {
    models.set(
      model.id,
      configureModel(model, {
        provider,
        known: models.get(model.id),
        redirected: redirected.has(entry.id),
        vendorId: entry.like ?? entry.id,
        addedAtMs: options.previous?.models.get(model.id)?.addedAtMs ?? options.nowMs,
      }),
    );
  }
}

/** Returns the models that entries list, each with the routes of those providers alone. */
function listedModels(
  models: ReadonlyMap<string, CatalogModel>,
  entries: readonly ConfiguredProvider[],
): Map<string, CatalogModel> {
  const listed = new Set(
    entries.flatMap(({ id, models: own = [] }) => own.map((model) => `${id} ${model.id}`)),
  );
  return new Map(
    [...models].flatMap(([id, model]) => {
      const routes = model.routes.filter(({ provider }) => listed.has(`${provider.id} ${id}`));
      return routes.length === 0 ? [] : [[id, { ...model, routes }]];
    }),
  );
}

/** The changes from one catalog to the next; routing presets do not count as models. */
export interface CatalogChange {
  /** Model ids. */
  added: readonly string[];
  removed: readonly string[];
  /** Versions of prices that are new, of models that existed before. */
  repriced: readonly string[];
}

/** Compares two states of the catalog. */
export function compareCatalogs(before: CatalogSnapshot, after: CatalogSnapshot): CatalogChange {
  const own = ({ models }: CatalogSnapshot): CatalogModel[] =>
    [...models.values()].filter(({ router }) => router === undefined);
  const known = new Set(own(before).flatMap(versionsOf));
  return {
    added: own(after).flatMap(({ id }) => (before.models.has(id) ? [] : [id])),
    removed: own(before).flatMap(({ id }) => (after.models.has(id) ? [] : [id])),
    repriced: own(after)
      .filter(({ id }) => before.models.has(id))
      .flatMap(versionsOf)
      .filter((version) => !known.has(version)),
  };
}

const versionsOf = ({ routes }: CatalogModel): string[] =>
  routes.flatMap(({ price }) => price?.version ?? []);

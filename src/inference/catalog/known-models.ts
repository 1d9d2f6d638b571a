import { contentOf, type CatalogFacts, type FactRow } from "./catalog-facts.ts";
import { factModel, factPriceReader } from "./fact-model.ts";
import { definitionOf } from "./model-rules.ts";
import type { CatalogModel, Provider } from "./model.ts";

/** What the models of the facts are made of. */
interface KnownSources {
  facts: CatalogFacts;
  /** The providers of this catalog. */
  providers: ReadonlyMap<string, Provider>;
  /** Providers whose dialect the operator chose, so that the vendor's deviations do not apply. */
  redirected: ReadonlySet<string>;
}

/** Models of facts, with what they were made of. */
interface KnownModels {
  /** Identifies the content of the bundled facts. */
  content: object;
  /** The built-in providers, which the models' routes refer to. */
  builtIn: ReadonlyMap<string, Provider>;
  redirected: readonly string[];
  models: ReadonlyMap<string, CatalogModel>;
}

/**
 * Those of the last catalog of this process that was made of the bundled facts. A reload that
 * changes neither them nor built-in providers takes its models over, which saves most of its work.
 */
let last: KnownModels | undefined;

const builtInOf = (providers: ReadonlyMap<string, Provider>): Map<string, Provider> =>
  new Map([...providers].filter(([id]) => definitionOf(id) !== undefined));

/**
 * Returns whether a provider's credential is in a file. Its signer reads it once, so that a reload
 * needs another provider to read it again.
 */
const readsKeyFile = ({ signing }: Provider): boolean =>
  signing?.type === "google-service-account" && "file" in signing.key;

/**
 * Returns the models that the facts describe, and the providers that their routes refer to: equal
 * ones are those of the last catalog. Callers may add to both maps, and change nothing in them.
 */
export function knownModels(sources: KnownSources): {
  models: Map<string, CatalogModel>;
  providers: Map<string, Provider>;
} {
  const { facts, providers } = sources;
  const content = contentOf(facts);
  if (content === undefined) return { models: factModels(sources), providers: new Map(providers) };
  const builtIn = builtInOf(providers);
  const redirected = [...sources.redirected].filter((id) => builtIn.has(id)).sort();
  const isSame =
    last?.content === content &&
    ![...builtIn.values()].some(readsKeyFile) &&
    Bun.deepEquals([last.redirected, last.builtIn], [redirected, builtIn], true);
  if (last === undefined || !isSame)
    last = { content, builtIn, redirected, models: factModels(sources) };
  const kept = last;
  return {
    models: new Map(kept.models),
    providers: new Map([...providers].map(([id, own]) => [id, kept.builtIn.get(id) ?? own])),
  };
}

/**
 * Makes the models of the facts. Rows of one model are adjacent, since the facts are sorted by id.
 */
function factModels({
  facts: { rows, snapshot },
  providers,
  redirected,
}: KnownSources): Map<string, CatalogModel> {
  const context = { providers, redirected, priceOf: factPriceReader(snapshot) };
  const models = new Map<string, CatalogModel>();
  let group: FactRow[] = [];
  const close = (): void => {
    const model = factModel(group, context);
    if (model !== undefined) models.set(model.id, model);
    group = [];
  };
  for (const row of rows) {
    if (group.length > 0 && group[0]?.id !== row.id) close();
    group.push(row);
  }
  close();
  return models;
}

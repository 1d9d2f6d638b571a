import { providerDefinitions } from "../providers/index.ts";
import { compareText, type CatalogFacts, type FactRow } from "./catalog-facts.ts";
import { readModelName } from "./catalog-id.ts";
import type { FactsSource } from "./facts-source.ts";
import { makerModels, type MakerModel } from "./maker-models.ts";
import { newerModels, type NewerModel } from "./newer-models.ts";
import { sourceRow, type CandidateRow } from "./source-row.ts";

/**
 * The source's facts in the project's own form: one id a model whoever serves it, only what a surface
 * serves, sorted. Pure; equal sources give equal facts.
 */
export function transformFacts(source: FactsSource): CatalogFacts {
  const candidates = withDatelessNames([
    ...readSource(source),
    ...makerModels.map(makerRow),
    ...newerModels.map(newerRow),
  ]);
  const rows = [...groupBy(candidates, ({ row }) => row.id).values()].flatMap(rowsOfModel);
  rows.sort(
    (left, right) => compareText(left.id, right.id) || compareText(left.provider, right.provider),
  );
  return {
    source: source.source,
    licence: "MIT",
    snapshot: source.snapshot,
    units: "USD per million tokens; request: USD per million requests",
    aliases: aliasesOf(source, new Set(rows.map(({ id }) => id))),
    rows,
  };
}

function readSource(source: FactsSource): CandidateRow[] {
  return source.providers.flatMap((provider) => {
    const definition = definitionOf(provider.id);
    // What a server on somebody's own machine has loaded is no fact of the catalog.
    if (definition === undefined || definition.local) return [];
    return provider.models.flatMap((model) => sourceRow(definition, model) ?? []);
  });
}

const definitionOf = (factsId: string) =>
  providerDefinitions.find((definition) => (definition.factsId ?? definition.id) === factsId);

const makerRow = ({ provider, upstream, free, ...known }: MakerModel): CandidateRow =>
  newerRow({
    provider,
    upstream,
    ...known,
    capabilities: [known.surface],
    ...(free && { prices: { input: "0", output: "0" } }),
  });

function newerRow({ provider, upstream, ...known }: NewerModel): CandidateRow {
  const naming = providerDefinitions.find(({ id }) => id === provider)?.naming ?? {};
  const row: FactRow = {
    id: readModelName({ id: provider, naming }, upstream).catalogId,
    provider,
    upstream,
    ...known,
  };
  // Of a model that the source knows after all, the source's row stays.
  return { row, deprecated: false, answersInMedia: false, rank: 1000 };
}

const datedName = /-20\d{6}$/;

/**
 * Clouds list Anthropic's models under the names of their snapshots. Such a row serves the date-less
 * name too, where others list that name and its own provider does not.
 */
function withDatelessNames(candidates: readonly CandidateRow[]): CandidateRow[] {
  const providersById = new Map<string, Set<string>>();
  for (const { row } of candidates) {
    const providers = providersById.get(row.id) ?? new Set();
    providersById.set(row.id, providers.add(row.provider));
  }
  const dateless = candidates.flatMap((candidate): CandidateRow[] => {
    const { row } = candidate;
    const id = row.id.replace(datedName, "");
    const providers = providersById.get(id);
    const missing = id !== row.id && providers !== undefined && !providers.has(row.provider);
    return missing && id.startsWith("anthropic/") ? [{ ...candidate, row: { ...row, id } }] : [];
  });
  return [...candidates, ...dateless];
}

/** The rows of one model: one a provider, none deprecated while another is not, none for other media. */
function rowsOfModel(candidates: readonly CandidateRow[]): FactRow[] {
  // Some vendors list text models as if they answered in images; the others' rows tell.
  if (candidates.every(({ answersInMedia }) => answersInMedia)) return [];
  const live = candidates.filter(({ deprecated }) => !deprecated);
  const kept = live.length > 0 ? live : candidates;
  return [...groupBy(kept, ({ row }) => row.provider).values()].flatMap((ofProvider) => {
    const best = ofProvider.toSorted(
      (left, right) => left.rank - right.rank || compareText(left.row.upstream, right.row.upstream),
    )[0];
    return best === undefined ? [] : [best.row];
  });
}

/** Resellers whose ids people copy as they are. */
const idsThatPeopleCopy: ReadonlySet<string> = new Set(["openrouter", "vercel"]);

function aliasesOf(source: FactsSource, ids: ReadonlySet<string>): Record<string, string> {
  const aliases: Record<string, string> = {};
  for (const { id: vendor, models } of source.providers) {
    const definition = idsThatPeopleCopy.has(vendor) ? definitionOf(vendor) : undefined;
    if (definition === undefined) continue;
    for (const { id } of models) {
      const alias = id.toLowerCase();
      const { catalogId } = readModelName(definition, id);
      if (alias !== catalogId && ids.has(catalogId) && !ids.has(alias))
        aliases[alias] ??= catalogId;
    }
  }
  return aliases;
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

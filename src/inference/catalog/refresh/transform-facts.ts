import { providerDefinitions } from "../../providers/index.ts";
import type { ProviderDefinition, Surface } from "../../providers/provider-definition.ts";
import { compareText, type CatalogFacts, type FactRow } from "../catalog-facts.ts";
import { readModelName } from "../model-names.ts";
import { present } from "../model.ts";
import { sourcePrices, type FactsSource, type SourceModel } from "./facts-source.ts";
import { makerModels, newerModels, type MakerModel, type NewerModel } from "./maker-models.ts";

/**
 * The source's facts in the project's own form: one id a model with any provider, only what a
 * surface serves, sorted. Pure; equal sources give equal facts.
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
    // The models that a local server has loaded are no facts of the catalog.
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
 * Clouds list Anthropic's models under the names of their snapshots. Such a row serves the
 * date-less name too, where others list that name and its own provider does not.
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

/**
 * The rows of one model: one a provider, none deprecated while another is not, none for other
 * media.
 */
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

/** A row on its way into the facts, with what decides between it and others of the same model. */
interface CandidateRow {
  row: FactRow;
  deprecated: boolean;
  /** True when the source names output beside text. */
  answersInMedia: boolean;
  /** Among rows of one provider for one model the lowest stays. */
  rank: number;
}

/**
 * Reads a model of the source; undefined when it is nothing that a surface of its provider serves.
 */
function sourceRow(definition: ProviderDefinition, model: SourceModel): CandidateRow | undefined {
  const { catalogId, quantization } = readModelName(definition, model.id);
  const surface = surfaceOf(model);
  const context = model.limit?.context;
  const priced = sourcePrices(model.cost, { provider: definition.id, catalogId });
  if (!isServed(definition, { model, surface, context })) return undefined;
  const efforts = effortsOf(model);
  const row: FactRow = present({
    id: catalogId,
    provider: definition.id,
    upstream: model.id,
    name: displayName(model.name),
    surface,
    context: positive(context),
    // Of embedding models the source lists the dimensions as output.
    max_output: surface === "chat" ? positive(model.limit?.output) : undefined,
    quantization,
    prices: priced?.prices,
    tiers: priced?.tiers,
    capabilities: surface === "chat" ? chatCapabilities(model) : [surface],
    parameters: surface === "chat" ? chatParameters(model, efforts) : undefined,
    efforts,
    released: model.release_date,
  });
  const output = model.modalities?.output ?? ["text"];
  return {
    row,
    deprecated: model.status === "deprecated",
    answersInMedia: output.some((kind) => kind !== "text"),
    rank: rankOf(definition, model),
  };
}

function isServed(
  definition: ProviderDefinition,
  {
    model,
    surface,
    context,
  }: { model: SourceModel; surface: Surface; context: number | undefined },
): boolean {
  const deviation = definition.deviatingModels?.find(({ match }) => match.test(model.id));
  if (deviation?.dialect === "none" || definition.dialects[surface] === undefined) return false;
  const { input, output } = model.modalities ?? { input: ["text"], output: ["text"] };
  if (!input.includes("text") || !output.includes("text")) return false;
  // Speech and image models have no context; without price and context nothing usable is known.
  return surface === "chat" ? (context ?? 0) > 0 : (context ?? 0) > 0 || model.cost !== undefined;
}

function surfaceOf({ id, name }: SourceModel): Surface {
  if (/rerank/i.test(id)) return "rerank";
  return /embed|(?:^|\/)bge-|voyage-/i.test(`${id} ${name}`) ? "embeddings" : "chat";
}

/** The source marks the newest of several snapshots, and Bedrock's regions, behind the name. */
const displayName = (name: string): string =>
  name.replace(/ \((?:latest|global|us|eu|au|jp)\)$/i, "").trim();

const positive = (count: number | undefined): number | undefined =>
  count !== undefined && Number.isInteger(count) && count > 0 ? count : undefined;

function chatCapabilities(model: SourceModel): string[] {
  const input = new Set(model.modalities?.input);
  const capabilities: readonly (readonly [string, boolean | undefined])[] = [
    ["chat", true],
    ["function-calling", model.tool_call],
    ["vision", input.has("image")],
    ["audio-input", input.has("audio")],
    ["document-input", input.has("pdf")],
    ["structured-output", model.structured_output],
    ["reasoning", model.reasoning],
  ];
  return capabilities.filter(([, has]) => has).map(([name]) => name);
}

/** What the source is sure of; a parameter that it does not speak of is left out. */
function chatParameters(model: SourceModel, efforts: readonly string[] | undefined): string[] {
  const parameters: readonly (readonly [readonly string[], boolean | undefined])[] = [
    [["max_tokens", "stop", "stream"], true],
    [["tools", "tool_choice"], model.tool_call],
    [["response_format", "structured_outputs"], model.structured_output],
    [["temperature", "top_p"], model.temperature],
    [["reasoning_effort"], efforts !== undefined],
  ];
  return parameters.filter(([, has]) => has).flatMap(([names]) => names);
}

const effortOrder = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/**
 * Effort levels in ascending order, those of no known height last; undefined when none is declared.
 */
function effortsOf({ reasoning_options: options }: SourceModel): string[] | undefined {
  const declared = new Set(
    (options ?? []).filter(({ type }) => type === "effort").flatMap(({ values }) => values ?? []),
  );
  if (declared.size === 0) return undefined;
  return [...effortOrder.filter((level) => declared.delete(level)), ...declared];
}

/**
 * Bedrock lists a model once a region. The worldwide profile works from everywhere; then come those
 * of the default region. Rows with an address of their own come last.
 */
function rankOf({ naming }: ProviderDefinition, model: SourceModel): number {
  if (model.provider?.api !== undefined) return 100;
  const region = (naming.strip ?? []).findIndex((prefix) => model.id.startsWith(prefix));
  return naming.separator === undefined || region < 0 ? 1.5 : region;
}

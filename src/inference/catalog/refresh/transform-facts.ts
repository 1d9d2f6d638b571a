import { providerDefinitions } from "../../providers/index.ts";
import type { ProviderDefinition, Surface } from "../../providers/provider-definition.ts";
import { compareText, type CatalogFacts, type FactRow, type FactPrices } from "../catalog-facts.ts";
import { readModelName } from "../names/model-names.ts";
import { present } from "../model.ts";
import { mediaModels } from "./media-models.ts";
import { withVendorExtras } from "./vendor-extras.ts";
import { sourceLevels, sourcePrices, type FactsSource, type SourceModel } from "./facts-source.ts";

/** A model that its maker serves and the facts source does not list for it. */
interface MakerModel {
  provider: string;
  upstream: string;
  name: string;
  surface: Surface;
  context: number;
  /** Whether the vendor charges nothing. */
  free?: true;
}

type Listed = readonly [upstream: string, name: string, context: number];

const served = (provider: string, surface: Surface, models: readonly Listed[]): MakerModel[] =>
  models.map(([upstream, name, context]) => ({ provider, upstream, name, surface, context }));

/**
 * Retrieval and moderation models by name and context, from their vendors' pages (2026-07). They
 * have no price here: callers with their own key can use them, others once the operator sets
 * prices.
 */
const makerModels: readonly MakerModel[] = [
  // docs.voyageai.com/docs/embeddings and /reranker
  ...served("voyage", "embeddings", [
    ["voyage-4-large", "Voyage 4 Large", 32_000],
    ["voyage-4", "Voyage 4", 32_000],
    ["voyage-4-lite", "Voyage 4 Lite", 32_000],
    ["voyage-3-large", "Voyage 3 Large", 32_000],
    ["voyage-3.5", "Voyage 3.5", 32_000],
    ["voyage-3.5-lite", "Voyage 3.5 Lite", 32_000],
    ["voyage-code-3", "Voyage Code 3", 32_000],
    ["voyage-finance-2", "Voyage Finance 2", 32_000],
    ["voyage-law-2", "Voyage Law 2", 16_000],
  ]),
  ...served("voyage", "rerank", [
    ["rerank-2.5", "Voyage Rerank 2.5", 32_000],
    ["rerank-2.5-lite", "Voyage Rerank 2.5 Lite", 32_000],
  ]),
  // jina.ai/embeddings and /reranker
  ...served("jina", "embeddings", [
    ["jina-embeddings-v4", "Jina Embeddings v4", 32_768],
    ["jina-embeddings-v3", "Jina Embeddings v3", 8_192],
  ]),
  ...served("jina", "rerank", [
    ["jina-reranker-v3", "Jina Reranker v3", 131_072],
    ["jina-reranker-m0", "Jina Reranker m0", 10_240],
  ]),
  // docs.cohere.com/docs/models
  ...served("cohere", "embeddings", [
    ["embed-v4.0", "Embed 4", 128_000],
    ["embed-english-v3.0", "Embed English 3", 512],
    ["embed-multilingual-v3.0", "Embed Multilingual 3", 512],
  ]),
  ...served("cohere", "rerank", [
    ["rerank-v4.0-pro", "Rerank 4 Pro", 32_768],
    ["rerank-v4.0-fast", "Rerank 4 Fast", 32_768],
    ["rerank-v3.5", "Rerank 3.5", 4_096],
  ]),
  // docs.mistral.ai/capabilities/embeddings
  ...served("mistral", "embeddings", [["codestral-embed", "Codestral Embed", 8_192]]),
  // platform.openai.com/docs/guides/moderation: free of charge.
  ...served("openai", "moderations", [["omni-moderation-latest", "Omni Moderation", 32_768]]).map(
    (model): MakerModel => ({ ...model, free: true }),
  ),
];

/** A chat model that its maker released after the snapshot of the facts source. */
type NewerModel = Omit<FactRow, "id">;

const anthropicTraits = {
  provider: "anthropic",
  surface: "chat",
  context: 1_000_000,
  max_output: 128_000,
  capabilities: ["chat", "function-calling", "vision", "document-input", "reasoning"],
  parameters: ["max_tokens", "stop", "stream", "tools", "tool_choice", "reasoning_effort"],
  efforts: ["low", "medium", "high", "xhigh", "max"],
} satisfies Partial<NewerModel>;

/**
 * Returns a Claude model. At Anthropic, cache writes cost 1.25 times the input for five minutes and
 * twice for an hour; reads have a price of their own.
 */
const claude = (upstream: string, name: string, prices: FactPrices): NewerModel => ({
  ...anthropicTraits,
  upstream,
  name,
  prices,
});

const openaiTraits = {
  provider: "openai",
  surface: "chat",
  context: 1_050_000,
  max_output: 128_000,
  capabilities: [
    "chat",
    "function-calling",
    "vision",
    "document-input",
    "structured-output",
    "reasoning",
  ],
  parameters: [
    "max_tokens",
    "stop",
    "stream",
    "tools",
    "tool_choice",
    "response_format",
    "structured_outputs",
    "reasoning_effort",
  ],
  // developers.openai.com/api/docs/models/gpt-5.6-sol (2026-11)
  efforts: ["none", "low", "medium", "high", "xhigh", "max"],
} satisfies Partial<NewerModel>;

/**
 * Returns a GPT model. At OpenAI, above 272,000 input tokens a request costs twice as much for its
 * input and 1.5 times as much for its output.
 */
const gpt = (
  upstream: string,
  name: string,
  [prices, long]: readonly [FactPrices, FactPrices],
): NewerModel => ({
  ...openaiTraits,
  upstream,
  name,
  prices,
  tiers: [{ above: 272_000, prices: long }],
});

/**
 * Models that agents request by default and that are newer than the snapshot. Prices and windows
 * are from the npm package @pydantic/genai-prices 0.1.8 (MIT, 2026-09-23), which cites the makers'
 * price pages; the largest output is that of their predecessors, and what Claude Code 2.1.329
 * requests. A row of the facts source replaces the one here.
 */
const newerModels: readonly NewerModel[] = [
  claude("claude-opus-5", "Claude Opus 5", {
    input: "5",
    output: "25",
    cache_read: "0.5",
    cache_write: "6.25",
    cache_write_1h: "10",
  }),
  claude("claude-opus-5-5", "Claude Opus 5.5", {
    input: "4",
    output: "20",
    cache_read: "0.2",
    cache_write: "5",
    cache_write_1h: "8",
  }),
  claude("claude-fable-5-1", "Claude Fable 5.1", {
    input: "10",
    output: "50",
    cache_read: "0.25",
    cache_write: "12.5",
    cache_write_1h: "20",
  }),
  gpt("gpt-5.6-luna", "GPT-5.6 Luna", [
    { input: "0.2", output: "1.2", cache_read: "0.02", cache_write: "0.25" },
    { input: "0.4", output: "1.8", cache_read: "0.04", cache_write: "0.5" },
  ]),
  gpt("gpt-5.6-terra", "GPT-5.6 Terra", [
    { input: "2", output: "12", cache_read: "0.2", cache_write: "2.5" },
    { input: "4", output: "18", cache_read: "0.4", cache_write: "5" },
  ]),
  gpt("gpt-5.6-sol", "GPT-5.6 Sol", [
    { input: "4", output: "20", cache_read: "0.4", cache_write: "5" },
    { input: "8", output: "30", cache_read: "0.8", cache_write: "10" },
  ]),
  gpt("gpt-6-luna", "GPT-6 Luna", [
    { input: "0.1", output: "0.5", cache_read: "0.01", cache_write: "0.125" },
    { input: "0.2", output: "0.75", cache_read: "0.02", cache_write: "0.25" },
  ]),
  gpt("gpt-6-sol", "GPT-6 Sol", [
    { input: "2", output: "10", cache_read: "0.2", cache_write: "2.5" },
    { input: "4", output: "15", cache_read: "0.4", cache_write: "5" },
  ]),
  {
    ...gpt("gpt-6-astra", "GPT-6 Astra", [
      { input: "10", output: "50", cache_read: "1", cache_write: "12.5" },
      { input: "20", output: "75", cache_read: "2", cache_write: "25" },
    ]),
    // UKGovernmentBEIS/inspect_ai#5254 (2026-09): `none` is answered with 400.
    efforts: ["low", "medium", "high", "xhigh", "max"],
  },
];

/**
 * Converts the source's facts to the project's own format: one id for each model at any provider,
 * only what a surface serves, sorted. Pure; equal sources yield equal facts.
 */
export function transformFacts(source: FactsSource): CatalogFacts {
  const candidates = withDatelessNames([
    ...readSource(source),
    ...makerModels.map(makerRow),
    ...newerModels.map(newerRow),
    // The source lists some of these as if they chatted.
    ...mediaModels.map((known) => ({ ...newerRow(known), rank: -1 })),
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
    rows: rows.map(withVendorExtras),
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
  // Where the source has the model after all, its row is used.
  return { row, deprecated: false, answersInMedia: false, rank: 1000 };
}

const datedName = /-20\d{6}$/;

/**
 * Adds rows with dateless names. Clouds list Anthropic's models under the names of their snapshots;
 * such a row serves the dateless name too, where others list that name and its own provider does
 * not.
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
 * Returns the rows of one model: one for each provider, no deprecated one where another is not,
 * none for other media.
 */
function rowsOfModel(candidates: readonly CandidateRow[]): FactRow[] {
  // Some vendors list text models as if they answered in images; other vendors' rows show that they
  // do not.
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

/** Resellers whose ids people copy verbatim. */
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

/** A candidate row of the facts, with what decides between it and others of the same model. */
interface CandidateRow {
  row: FactRow;
  deprecated: boolean;
  /** Whether the source names output beside text. */
  answersInMedia: boolean;
  /** The rank among rows of one provider for one model; the lowest is used. */
  rank: number;
}

/** Reads a model of the source; undefined when no surface of its provider serves it. */
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
    // For embedding models, the source lists the dimensions as output.
    max_output: surface === "chat" ? positive(model.limit?.output) : undefined,
    quantization,
    prices: priced?.prices,
    tiers: priced?.tiers,
    ...(priced !== undefined && sourceLevels(model, { provider: definition.id, catalogId })),
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

/**
 * Removes the source's markers behind a name: the newest of several snapshots, and Bedrock's
 * regions.
 */
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

/** Returns the parameters that the source is certain of; others are left out. */
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
 * Returns effort levels in ascending order, with unknown ones last; undefined when none is
 * declared.
 */
function effortsOf({ reasoning_options: options }: SourceModel): string[] | undefined {
  const declared = new Set(
    (options ?? []).filter(({ type }) => type === "effort").flatMap(({ values }) => values ?? []),
  );
  if (declared.size === 0) return undefined;
  return [...effortOrder.filter((level) => declared.delete(level)), ...declared];
}

/**
 * Returns the rank of a row. Bedrock lists a model once for each region: the global profile works
 * everywhere and comes first, then those of the default region. Rows with an address of their own
 * come last.
 */
function rankOf({ naming }: ProviderDefinition, model: SourceModel): number {
  if (model.provider?.api !== undefined) return 100;
  const region = (naming.strip ?? []).findIndex((prefix) => model.id.startsWith(prefix));
  return naming.separator === undefined || region < 0 ? 1.5 : region;
}

import type { ProviderDefinition, Surface } from "../providers/provider-definition.ts";
import type { FactRow } from "./catalog-facts.ts";
import { readModelName } from "./catalog-id.ts";
import type { SourceModel } from "./facts-source.ts";
import { present } from "./present.ts";
import { sourcePrices } from "./source-prices.ts";

/** A row on its way into the facts, with what decides between it and others of the same model. */
export interface CandidateRow {
  row: FactRow;
  deprecated: boolean;
  /** True when the source names output beside text. */
  answersInMedia: boolean;
  /** Among rows of one provider for one model the lowest stays. */
  rank: number;
}

/** Reads a model of the source; undefined when it is nothing that a surface of its provider serves. */
export function sourceRow(
  definition: ProviderDefinition,
  model: SourceModel,
): CandidateRow | undefined {
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

/** Effort levels in ascending order, those of no known height last; undefined when none is declared. */
function effortsOf({ reasoning_options: options }: SourceModel): string[] | undefined {
  const declared = new Set(
    (options ?? []).filter(({ type }) => type === "effort").flatMap(({ values }) => values ?? []),
  );
  if (declared.size === 0) return undefined;
  return [...effortOrder.filter((level) => declared.delete(level)), ...declared];
}

/**
 * Bedrock lists a model once a region. The worldwide profile works from everywhere; then come those of
 * the default region. Rows with an address of their own come last.
 */
function rankOf({ naming }: ProviderDefinition, model: SourceModel): number {
  if (model.provider?.api !== undefined) return 100;
  const region = (naming.strip ?? []).findIndex((prefix) => model.id.startsWith(prefix));
  return naming.separator === undefined || region < 0 ? 1.5 : region;
}

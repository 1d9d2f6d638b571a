import type { JsonFields, PresetConfig } from "./preset.ts";

/** Null means absent, as it does everywhere in requests. */
export const isAbsent = (value: unknown): value is null | undefined =>
  value === null || value === undefined;

/** A plain object, or undefined for everything else. */
const asFields = (value: unknown): JsonFields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonFields)
    : undefined;

const asNames = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.every((entry) => typeof entry === "string")
    ? (value as string[])
    : undefined;

const present = (fields: JsonFields): JsonFields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => !isAbsent(value)));

/** Resolves a name to an id, such as the slug; names with the same id mean one provider. */
export type ProviderIdOf = (name: string) => string;

/** How the lists of two `provider` objects become one, the request's entries first. */
function mergeLists(
  own: readonly string[],
  preset: readonly string[],
  { idOf, keeps }: { idOf: ProviderIdOf; keeps: "either" | "both" },
): string[] {
  const presetIds = new Set(preset.map(idOf));
  if (keeps === "both") return own.filter((name) => presetIds.has(idOf(name)));
  const ownIds = new Set(own.map(idOf));
  return [...own, ...preset.filter((name) => !ownIds.has(idOf(name)))];
}

const sameText: ProviderIdOf = (name) => name;

/**
 * The `provider` object of a request that names a preset (contract: reasoning rule 5): `order`,
 * `ignore` and
 * `require_params` are unioned, `only` lists intersect, the higher `min_context` counts, and `zdr` holds
 * wherever it was asked for. Of every other field the request's own value wins. Undefined where the
 * preset says nothing of routing. What is not of its type is left for the check of requests.
 */
export function mergeRouting(
  config: PresetConfig,
  own: unknown,
  idOf: ProviderIdOf,
): JsonFields | undefined {
  const preset: JsonFields = {
    ...config.provider,
    ...withUnion(config.provider?.["require_params"], config.require_params),
    ...withHigher(config.provider?.["min_context"], config.min_context),
  };
  if (Object.keys(preset).length === 0) return undefined;
  if (isAbsent(own)) return preset;
  const request = asFields(own);
  if (request === undefined) return undefined;
  const merged: Record<string, unknown> = { ...preset, ...present(request) };
  for (const [field, keeps] of [
    ["order", "either"],
    ["ignore", "either"],
    ["only", "both"],
    ["require_params", "either"],
  ] as const) {
    const [ours, theirs] = [asNames(request[field]), asNames(preset[field])];
    if (ours === undefined || theirs === undefined) continue;
    merged[field] = mergeLists(ours, theirs, {
      idOf: field === "require_params" ? sameText : idOf,
      keeps,
    });
  }
  Object.assign(merged, withHigher(merged["min_context"], preset["min_context"]));
  if (preset["zdr"] === true && typeof request["zdr"] === "boolean") merged["zdr"] = true;
  return merged;
}

function withUnion(
  first: unknown,
  second: readonly string[] | undefined,
): { require_params?: string[] } {
  const names = [...(asNames(first) ?? []), ...(second ?? [])];
  return names.length === 0 ? {} : { require_params: [...new Set(names)] };
}

function withHigher(first: unknown, second: unknown): { min_context?: number } {
  if (typeof second !== "number") return {};
  if (isAbsent(first)) return { min_context: second };
  return typeof first === "number" ? { min_context: Math.max(first, second) } : {};
}

import { lowerBrandHeader } from "../../platform/kernel/brand.ts";
import type { AliasCondition, AliasTarget } from "../../platform/kernel/models/model-alias.ts";

/** The facts of a request on which an alias may depend. */
export interface AliasFacts {
  key: { name: string; hash: string };
  headerOf(name: string): string | null;
  body: Readonly<Record<string, unknown>>;
  /** The conversation, which keeps its model; undefined where the request names none. */
  conversation: string | undefined;
  /** Returns a number from 0 to below 1. */
  random(): number;
  /** Returns whether a model is there and its key may use it. */
  mayUse(model: string): boolean;
}

/** An entry of an alias, with its defaults. */
interface AliasEntry {
  models: readonly string[];
  weight: number | undefined;
  when: AliasCondition | undefined;
}

const entriesOf = (target: AliasTarget): readonly AliasEntry[] =>
  (typeof target === "string" ? [target] : target).map((entry) => {
    if (typeof entry === "string") return { models: [entry], weight: undefined, when: undefined };
    const { model, weight, when } = entry;
    return { models: typeof model === "string" ? [model] : model, weight, when };
  });

/** Returns every model that an alias may mean, in order. */
export const modelsOfAlias = (target: AliasTarget): readonly string[] => [
  ...new Set(entriesOf(target).flatMap(({ models }) => models)),
];

/**
 * Returns the models that an alias means in a request: the first is asked, the others are its
 * fallbacks. Entries whose condition is not met do not count. Among entries with weights one is
 * chosen that the key may use, the same for all requests of a conversation; where there are
 * conditions the first entry counts; otherwise all do. Empty where no condition is met.
 */
export function chooseModels(
  name: string,
  { target, facts }: { target: AliasTarget; facts: AliasFacts },
): readonly string[] {
  const entries = entriesOf(target);
  const met = entries.filter(({ when }) => when === undefined || isMet(when, facts));
  const [first] = met;
  if (first === undefined) return [];
  if (first.weight !== undefined) return weighted(met, { name, facts }).models;
  if (entries.some(({ when }) => when !== undefined)) return first.models;
  return [...new Set(met.flatMap(({ models }) => models))];
}

function weighted(
  entries: readonly AliasEntry[],
  { name, facts }: { name: string; facts: AliasFacts },
): AliasEntry {
  const all = entries.filter(({ weight }) => weight !== undefined);
  const usable = all.filter(({ models }) => models.some((model) => facts.mayUse(model)));
  const candidates = usable.length === 0 ? all : usable;
  const sum = candidates.reduce((total, { weight = 0 }) => total + weight, 0);
  let left = placeOf(name, facts) * sum;
  for (const candidate of candidates) {
    left -= candidate.weight ?? 0;
    if (left < 0) return candidate;
  }
  return candidates.at(-1) as AliasEntry;
}

/** Returns where a request stands between 0 and 1: its conversation's place, or any. */
function placeOf(name: string, { conversation, random }: AliasFacts): number {
  if (conversation === undefined) return random();
  return Number(Bun.hash.wyhash(`${name}\n${conversation}`) >> 11n) / 2 ** 53;
}

function isMet({ key, tag, header, metadata }: AliasCondition, facts: AliasFacts): boolean {
  if (key !== undefined && key !== facts.key.name && key !== facts.key.hash) return false;
  if (tag !== undefined && !tagsOf(facts).includes(tag)) return false;
  const sent = Object(facts.body["metadata"]) as Readonly<Record<string, unknown>>;
  return (
    Object.entries(header ?? {}).every(([name, value]) => facts.headerOf(name) === value) &&
    Object.entries(metadata ?? {}).every(([name, value]) => String(sent[name]) === String(value))
  );
}

/** The header that names a request's tags, separated by commas. */
const tagsHeader = lowerBrandHeader("Tags");

/** Returns a request's tags: those of its metadata, and those of the header. */
function tagsOf({ body, headerOf }: AliasFacts): readonly string[] {
  const { tags } = Object(body["metadata"]) as { tags?: unknown };
  const written = Array.isArray(tags) ? tags.map(String) : [];
  const sent = headerOf(tagsHeader)?.split(",") ?? [];
  return [...written, ...sent.map((tag) => tag.trim())];
}

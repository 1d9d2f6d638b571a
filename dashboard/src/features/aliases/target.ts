import { listOf } from "../../ui/fields.tsx";
import type { AliasTarget } from "./api.ts";

/** How an alias chooses among its models. */
export type Way = "order" | "weight" | "condition";

/** A model with its share of the requests, against the weights of the others. */
export interface Weighted {
  model: string;
  weight: number;
}

const isJson = (text: string): boolean => /^\s*[[{]/.test(text);

/** Returns the target of an alias as text: models with commas, or JSON. */
export const textOf = (target: unknown): string =>
  typeof target === "string"
    ? target
    : Array.isArray(target) && target.every((each) => typeof each === "string")
      ? target.join(", ")
      : target === undefined
        ? ""
        : JSON.stringify(target, null, 2);

function parsed(json: string): AliasTarget {
  try {
    return JSON.parse(json) as AliasTarget;
  } catch (cause) {
    const reason = cause instanceof Error ? ` ${cause.message}` : "";
    throw new Error(`Models: this begins like JSON and is none.${reason}`, { cause });
  }
}

/** Returns the same as a value. Throws where it begins like JSON and is none. */
export function targetOf(text: string): AliasTarget {
  if (isJson(text)) return parsed(text);
  const models = listOf(text);
  const [first, ...others] = models;
  return first !== undefined && others.length === 0 ? first : models;
}

/** The entries of a target that is written as JSON; none where it is not a list. */
function entriesOf(text: string): readonly Readonly<Record<string, unknown>>[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.map((each: unknown) => Object(each)) : [];
  } catch {
    return [];
  }
}

const isWeighted = (entry: Readonly<Record<string, unknown>>): boolean =>
  typeof entry["model"] === "string" &&
  Object.keys(entry).every((name) => name === "model" || name === "weight");

/** Returns how a target chooses. */
export function wayOf(text: string): Way {
  if (!isJson(text)) return "order";
  const entries = entriesOf(text);
  return entries.length > 0 && entries.every(isWeighted) ? "weight" : "condition";
}

/** Returns the models of a target with their weights, which are 1 where it has none. */
export const weightedOf = (text: string): readonly Weighted[] =>
  isJson(text)
    ? entriesOf(text).flatMap(({ model, weight }) =>
        typeof model === "string"
          ? [{ model, weight: typeof weight === "number" ? weight : 1 }]
          : [],
      )
    : listOf(text).map((model) => ({ model, weight: 1 }));

/** Returns a target with these models as text. */
export function textIn(way: Way, models: readonly Weighted[]): string {
  if (way === "order") return models.map(({ model }) => model).join(", ");
  const entries = way === "weight" ? models : models.map(({ model }) => ({ model }));
  return JSON.stringify(entries, null, 2);
}

import {
  type OutputCapName,
  outputBound,
  outputCapNames,
  type PresetSettings,
} from "../../../platform/kernel/models/preset-settings.ts";
import { isAbsent } from "./wire-fields.ts";
import type { DialectDeviations } from "../deviations.ts";
import type { Loss } from "../../canonical/request.ts";
import type { TargetRoute } from "./exchange.ts";

/** The members of requests that cap the output, in any dialect that has them at the top. */
export const capFields: readonly string[] = [...outputCapNames, "max_output_tokens"];

/** Returns the output cap of a request, whose members `read` returns; undefined without any. */
export const capOf = <Value>(read: (name: OutputCapName) => Value | undefined): Value | undefined =>
  read("max_completion_tokens") ?? read("max_tokens");

/** Returns the name under which an upstream is sent a cap that its client did not name. */
const capNameFor = ({ maxTokensField: field }: DialectDeviations): OutputCapName =>
  field === "max_completion_tokens" ? field : "max_tokens";

/** Returns the name of a cap that was translated; an upstream of both names gets the present one. */
export const translatedCapName = (deviations: DialectDeviations): OutputCapName =>
  deviations.maxTokensField === "either" ? "max_completion_tokens" : capNameFor(deviations);

/**
 * Returns the cap of a preset as members of a request that has none, under the name that the preset
 * gives it. OpenAI refuses requests that have both.
 */
export function presetCap(
  settings: PresetSettings,
  body: Readonly<Record<string, unknown>>,
): { readonly [Name in OutputCapName]?: number } {
  const cap = outputBound(settings);
  if (cap === undefined || outputCapNames.some((name) => !isAbsent(body[name]))) return {};
  const name = outputCapNames.find((each) => settings[each] !== undefined) ?? "max_tokens";
  return { [name]: cap };
}

/** Returns the smallest cap that a route takes; 0 where it takes any. */
export const leastCapOf = ({ provider, upstreamModel }: TargetRoute["route"]): number => {
  const { leastCap } = provider.deviations;
  return leastCap?.models.test(upstreamModel) === true ? leastCap.tokens : 0;
};

const raised = (field: string, least: number): Loss => ({
  field,
  reason: `raised to ${least}, the least that the provider takes for this model`,
});

/**
 * Writes the cap of a kept request under the name that the upstream knows, since it would ignore
 * another, and lowers each that limits the answer to `outputCap`, where there is one. Returns what
 * was raised to the least that the route takes.
 */
export function fitCap(
  body: Readonly<Record<string, unknown>>,
  {
    edits,
    route,
    outputCap,
  }: {
    edits: Map<string, string | undefined>;
    route: TargetRoute["route"];
    outputCap: number | undefined;
  },
): readonly Loss[] {
  const { deviations } = route.provider;
  const known = capNameFor(deviations);
  const other = known === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  const asked = capOf((name) => body[name] ?? undefined);
  if (deviations.maxTokensField !== "either" && other in body && typeof asked === "number") {
    edits.set(other, undefined);
    edits.set(known, String(asked));
  }
  const least = leastCapOf(route);
  if (outputCap === undefined && least === 0) return [];
  const sent = outputCapNames.flatMap((name) => {
    const text = edits.has(name) ? edits.get(name) : numberText(body[name]);
    return text === undefined ? [] : [{ name, text }];
  });
  if (sent.length === 0 && outputCap !== undefined) edits.set(known, String(outputCap));
  const low = sent.filter(({ text }) => Number(text) < least);
  for (const { name } of low) edits.set(name, String(least));
  for (const { name, text } of sent)
    if (outputCap !== undefined && Number(text) > outputCap) edits.set(name, String(outputCap));
  return low.map(({ name }) => raised(name, least));
}

const numberText = (value: unknown): string | undefined =>
  typeof value === "number" ? String(value) : undefined;

/**
 * Returns the lower of the requested cap and the affordable one; undefined where there is neither.
 */
export function lowerCap(asked: unknown, outputCap: number | undefined): number | undefined {
  if (typeof asked !== "number") return outputCap;
  return outputCap === undefined || asked <= outputCap ? asked : outputCap;
}

/** An output cap as the gateway sends it to a route. */
interface FittedCap {
  /** Undefined where none is named. */
  cap: number | undefined;
  losses: readonly Loss[];
}

/**
 * Returns the requested cap, lowered to what the caller can pay for and to what the route allows,
 * and raised to the least that it takes, since providers answer others with 400.
 */
export function fittedCap(
  asked: unknown,
  {
    field,
    route,
    outputCap,
  }: {
    field: "max_tokens" | "max_output_tokens" | "maxOutputTokens";
    route: TargetRoute["route"];
    outputCap: number | undefined;
  },
): FittedCap {
  const cap = lowerCap(asked, outputCap);
  const least = leastCapOf(route);
  if (cap !== undefined && cap < least) return { cap: least, losses: [raised(field, least)] };
  const { maxCompletionTokens: largest } = route;
  if (cap === undefined || largest === undefined || cap <= largest) return { cap, losses: [] };
  return {
    cap: largest,
    losses: [{ field, reason: `cut to the ${largest} that the provider allows for this model` }],
  };
}

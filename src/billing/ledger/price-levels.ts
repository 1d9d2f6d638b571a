import {
  levelFields,
  levelOf,
  searchTool,
  type ChargedExtras,
  type LevelField,
  type Levels,
} from "../../platform/kernel/models/charged-extras.ts";
import type { PicoUsd } from "../../platform/kernel/money.ts";
import {
  inputParts,
  mediaParts,
  outputParts,
  type PictureKind,
  type Usage,
} from "../../platform/kernel/usage.ts";
import {
  priceOfMedia,
  minutePrices,
  chargeFor,
  unitPrice,
  type Factor,
  type PicturePrices,
  type PriceRow,
  type PriceTier,
  type PriceVector,
} from "./price.ts";

const pricesByLevel = new WeakMap<PriceRow, Map<string, PriceRow>>();

/**
 * Returns the prices of a request at these levels; undefined where one of them has no price. Each
 * is computed once for a row.
 */
export function priceAt(row: PriceRow, levels: Levels): PriceRow | undefined {
  const asked = levelFields.flatMap((field) => {
    const value = levels[field];
    return value === undefined ? [] : [[field, value] as const];
  });
  if (asked.length === 0) return row;
  if (!asked.every(([field, value]) => row.levels?.[field]?.[value] !== undefined))
    return undefined;
  const key = asked.map(([field, value]) => `+${field}=${value}`).join("");
  let known = pricesByLevel.get(row);
  if (known === undefined) pricesByLevel.set(row, (known = new Map()));
  let price = known.get(key);
  if (price === undefined) {
    price = computed(row, { asked, key });
    if (price !== undefined) known.set(key, price);
  }
  return price;
}

function computed(
  row: PriceRow,
  { asked, key }: { asked: readonly (readonly [LevelField, string])[]; key: string },
): PriceRow | undefined {
  const levels = asked.flatMap(([field, value]) => row.levels?.[field]?.[value] ?? []);
  const written = levels.filter((level) => "base" in level);
  // No vendor states a price for two levels with prices of their own at once.
  if (written.length > 1) return undefined;
  const [own] = written;
  const factor = levels.reduce(
    (product, level) => ("factor" in level ? (product * level.factor) / whole : product),
    whole,
  );
  const base = { ...feesOf(row.base), ...(own?.base ?? row.base) };
  const tiers = own === undefined ? row.tiers : tiersOf(row, own);
  return {
    ...row,
    version: `${row.version}${key}`,
    base: scaled(base, factor),
    ...(row.pictures !== undefined && { pictures: scaledPictures(row.pictures, factor) }),
    ...(tiers !== undefined && {
      tiers: tiers.map(({ aboveInputTokens, price }) => ({
        aboveInputTokens,
        price: scaled({ ...feesOf(row.base), ...price }, factor),
      })),
    }),
  };
}

const whole: Factor = 10_000n;

const minuteParts = Object.values(minutePrices);

const feeParts = ["request", "searches", "toolCalls", ...mediaParts, ...minuteParts] as const;

/** Returns the prices of a vector that are not per token. */
function feesOf(vector: PriceVector): Partial<PriceVector> {
  const fees: Partial<PriceVector> = {};
  for (const part of feeParts) {
    const price = vector[part];
    if (price !== undefined) fees[part] = price;
  }
  return fees;
}

/**
 * Returns the tiers of a level. Where it names none, a long request costs at least its ordinary
 * price.
 */
const tiersOf = (
  { tiers }: PriceRow,
  own: { base: PriceVector; tiers?: readonly PriceTier[] },
): readonly PriceTier[] | undefined =>
  own.tiers ??
  tiers?.map(({ aboveInputTokens, price }) => ({
    aboveInputTokens,
    price: highest(own.base, price),
  }));

/** The parts whose prices a factor changes: all but the fees of requests, searches and calls. */
const scaledParts = [...inputParts, ...outputParts, ...mediaParts, ...minuteParts];

function scaled(vector: PriceVector, factor: Factor): PriceVector {
  if (factor === whole) return vector;
  const result = { ...vector };
  for (const part of scaledParts) {
    const price = vector[part];
    if (price !== undefined) result[part] = times(price, factor);
  }
  return result;
}

const times = (price: PicoUsd, factor: Factor): PicoUsd => (price * factor + whole / 2n) / whole;

const scaledPictures = (pictures: PicturePrices, factor: Factor): PicturePrices =>
  Object.fromEntries(
    Object.entries(pictures).map(([size, byQuality]) => [
      size,
      Object.fromEntries(
        Object.entries(byQuality).map(([quality, price]) => [quality, times(price, factor)]),
      ),
    ]),
  );

/** Returns the higher price of every part of two vectors. */
export function highest(one: PriceVector, other: PriceVector): PriceVector {
  const result: PriceVector = { ...one, ...other };
  for (const part of Object.keys(result) as (keyof PriceVector)[]) {
    const [left, right] = [priceOf(one, part), priceOf(other, part)];
    result[part] = left > right ? left : right;
  }
  return result;
}

const priceOf = (vector: PriceVector, part: keyof PriceVector): PicoUsd =>
  part === "request" || part === "inputAudioMinute" || part === "outputAudioMinute"
    ? (vector[part] ?? 0n)
    : unitPrice(vector, part);

/** Returns the price of the most expensive of a request's tools; undefined where one has none. */
export function toolPrice(
  { tools }: Pick<PriceRow, "tools">,
  names: readonly string[],
): PicoUsd | undefined {
  let most = 0n;
  for (const name of names) {
    const price = tools?.[name];
    if (price === undefined) return undefined;
    if (price > most) most = price;
  }
  return most;
}

/**
 * Returns the first request field, or the name of the first tool, that a row has no price for;
 * undefined where it prices everything.
 */
export function unpriced(
  row: PriceRow,
  { levels, tools, searches }: ChargedExtras,
): { level: LevelField } | { tool: string } | undefined {
  for (const field of levelFields) {
    const value = levels[field];
    if (value !== undefined && row.levels?.[field]?.[value] === undefined) return { level: field };
  }
  if (priceAt(row, levels) === undefined)
    return { level: levelsAsked(levels)[0] ?? "service_tier" };
  if (searches && row.base.searches === undefined) return { tool: searchTool };
  const tool = tools.find((name) => row.tools?.[name] === undefined);
  return tool === undefined ? undefined : { tool };
}

const levelsAsked = (levels: Levels): LevelField[] =>
  levelFields.filter((field) => levels[field] !== undefined);

/** Returns a price with the calls of a request's tools, at the most expensive of them. */
function withTools(row: PriceRow, names: readonly string[]): PriceRow {
  const price = names.length === 0 ? undefined : toolPrice(row, names);
  if (price === undefined || price === 0n) return row;
  return {
    ...row,
    base: { ...row.base, toolCalls: price },
    ...(row.tiers !== undefined && {
      tiers: row.tiers.map((tier) => ({ ...tier, price: { ...tier.price, toolCalls: price } })),
    }),
  };
}

/** An answer as its price depends on it. */
interface PricedAnswer {
  /** What the request asked for beside tokens at the ordinary price. */
  asked: ChargedExtras | undefined;
  /** The levels that the answer says it was served at. */
  served: Levels | undefined;
  usage: Usage;
  /** The size and quality of the pictures that were made. */
  picture?: PictureKind | undefined;
}

/**
 * Returns the price that an answer is charged at: that of the levels that it says it was served at,
 * and of the size and quality of its pictures. Where it does not say so for a level that was asked
 * for, the more expensive of the two applies.
 */
export const chargedPrice = (row: PriceRow, answer: PricedAnswer): PriceRow =>
  priceOfMedia(levelPrice(row, answer), { usage: answer.usage, picture: answer.picture });

function levelPrice(row: PriceRow, { asked, served, usage }: PricedAnswer): PriceRow {
  if (row.levels === undefined && row.tools === undefined) return row;
  const stated = pricedLevels(row, served);
  const base = priceAt(row, stated) ?? row;
  const silent = levelFields.filter(
    (field) => served?.[field] === undefined && asked?.levels[field],
  );
  const open =
    silent.length === 0 ? undefined : priceAt(row, { ...stated, ...pick(asked, silent) });
  const price = open !== undefined && chargeFor(open, usage) > chargeFor(base, usage) ? open : base;
  return withTools(price, asked?.tools ?? []);
}

/** Returns the stated levels that have a price. */
function pricedLevels(row: PriceRow, served: Levels | undefined): Levels {
  const known: Levels = {};
  for (const field of levelFields) {
    const level = levelOf(field, served?.[field]);
    if (level !== undefined && row.levels?.[field]?.[level] !== undefined) known[field] = level;
  }
  return known;
}

const pick = (asked: ChargedExtras | undefined, fields: readonly LevelField[]): Levels =>
  Object.fromEntries(fields.map((field) => [field, asked?.levels[field]]));

/**
 * Returns the usage as it is charged: with one search or call where a request offered them and its
 * answer counts none, with one search where the provider charges those of a request together, and
 * with the least sound that its provider bills.
 */
export function chargedUsage(
  row: PriceRow,
  { usage, asked }: { usage: Usage; asked: ChargedExtras | undefined },
): Usage {
  const searches = usage.searches ?? asked?.uncounted.searches;
  const toolCalls = usage.toolCalls ?? asked?.uncounted.toolCalls;
  const charged = row.searchesOnce === true && (searches ?? 0) > 1 ? 1 : searches;
  const { inputAudioMs } = usage;
  const leastMs = inputAudioMs === undefined ? 0 : (row.minimumMs ?? 0);
  const billedMs = (inputAudioMs ?? 0) < leastMs ? leastMs : inputAudioMs;
  if (
    charged === usage.searches &&
    toolCalls === usage.toolCalls &&
    billedMs === usage.inputAudioMs
  )
    return usage;
  return {
    ...usage,
    ...(charged !== undefined && { searches: charged }),
    ...(toolCalls !== undefined && { toolCalls }),
    ...(billedMs !== undefined && { inputAudioMs: billedMs }),
  };
}

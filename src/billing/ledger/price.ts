import {
  countedParts,
  inputParts,
  outputParts,
  totalInputTokens,
  type Usage,
  type UsagePart,
  isMedia,
  mediaParts,
  type PictureKind,
} from "../../platform/kernel/usage.ts";
import type { LevelField } from "../../platform/kernel/models/charged-extras.ts";
import { nanoFromPico, type NanoUsd, type PicoUsd } from "../../platform/kernel/money.ts";

/**
 * Prices in pico-USD per token, search, call, picture, millisecond or character. A part without a
 * price of its own takes that of `fallbackParts`.
 */
export interface PriceVector extends Partial<Record<UsagePart, PicoUsd>> {
  inputTokens: PicoUsd;
  outputTokens: PicoUsd;
  /** Pico-USD per request, in addition to the tokens. */
  request?: PicoUsd;
  /**
   * Pico-USD per minute of sound, where it is priced so: exact, while the prices per millisecond are
   * rounded up, and hold what it costs at most.
   */
  inputAudioMinute?: PicoUsd;
  outputAudioMinute?: PicoUsd;
}

/** The exact prices of parts by the minute. */
export const minutePrices = {
  inputAudioMs: "inputAudioMinute",
  outputAudioMs: "outputAudioMinute",
} as const satisfies Partial<Record<UsagePart, keyof PriceVector>>;

const minutePriceOf: Partial<Record<UsagePart, "inputAudioMinute" | "outputAudioMinute">> =
  minutePrices;

/** The price of one request, with the version that explains its charge later. */
export interface PriceRow {
  /** The stable id of the row and its version, such as `acme/large@2026-07-02`. */
  version: string;
  base: PriceVector;
  /** The prices of the whole request once its total input exceeds a size, largest size first. */
  tiers?: readonly PriceTier[];
  /**
   * Other prices for the same tokens, by the request field that asks for them and its value
   * (`price-levels.ts`).
   */
  levels?: PriceLevels;
  /** Pico-USD per call of the provider's own tools, by their names; searches are in the vector. */
  tools?: Readonly<Record<string, PicoUsd>>;
  /** Whether searches cost the same however many of them one request makes. */
  searchesOnce?: true;
  /**
   * Pico-USD per picture by size and quality; `outputImages` of the vector is the dearest of them.
   */
  pictures?: PicturePrices;
  /** Milliseconds of sound that every request is billed for at least. */
  minimumMs?: number;
}

/** Prices of pictures by size, and for each size by quality; `default` matches any other name. */
export type PicturePrices = Readonly<Record<string, Readonly<Record<string, PicoUsd>>>>;

/** The prices of a whole request whose total input exceeds a size. */
export interface PriceTier {
  aboveInputTokens: number;
  price: PriceVector;
}

/** The price of a level: a vector of its own, or the ordinary one times a factor. */
export type PriceLevel = { base: PriceVector; tiers?: readonly PriceTier[] } | { factor: Factor };
/** A factor of token prices, in ten-thousandths. */
export type Factor = bigint;
/** Price levels by field and value. */
export type PriceLevels = Partial<Record<LevelField, Readonly<Record<string, PriceLevel>>>>;

/** The part whose price applies where a part has none of its own. */
const fallbackParts = {
  cacheReadTokens: "inputTokens",
  cacheReadAudioTokens: "inputAudioTokens",
  cacheReadImageTokens: "inputImageTokens",
  cacheWriteTokens: "inputTokens",
  cacheWriteOneHourTokens: "cacheWriteTokens",
  inputAudioTokens: "inputTokens",
  inputImageTokens: "inputTokens",
  reasoningTokens: "outputTokens",
  outputAudioTokens: "outputTokens",
  outputImageTokens: "outputTokens",
} as const satisfies Partial<Record<UsagePart, UsagePart>>;

const fallbackOf: Partial<Record<UsagePart, UsagePart>> = fallbackParts;

const allParts = [...inputParts, ...outputParts, ...countedParts];

/** Returns the pico-USD per unit of one part, from its own price or that of its fallback. */
export function unitPrice(price: PriceVector, part: UsagePart): PicoUsd {
  const own = price[part];
  if (own !== undefined) return own;
  const fallback = fallbackOf[part];
  return fallback === undefined ? 0n : unitPrice(price, fallback);
}

/** Returns the prices of the tier that the request's total input falls into. */
export function effectivePrice(row: PriceRow, inputTokens: number): PriceVector {
  const tier = row.tiers?.find((candidate) => inputTokens > candidate.aboveInputTokens);
  return tier ? tier.price : row.base;
}

/**
 * Returns the charge for a usage vector in nano-USD: exact in pico-USD, and rounded once, half up.
 */
export function chargeFor(row: PriceRow, usage: Usage): NanoUsd {
  const price = row.tiers === undefined ? row.base : effectivePrice(row, totalInputTokens(usage));
  let pico = price.request ?? 0n;
  let timed = 0n;
  for (const part of allParts) {
    const count = usage[part];
    if (!count) continue;
    const minute = minutePrice(price, part);
    if (minute === undefined) pico += BigInt(count) * unitPrice(price, part);
    else timed += BigInt(count) * minute;
  }
  return timed === 0n ? nanoFromPico(pico) : nanoFromPico(pico * perMinute + timed, perMinute);
}

/** The units of a part in a minute. */
const perMinute = 60_000n;

/** Returns the exact pico-USD per minute of a part that is priced so. */
function minutePrice(price: PriceVector, part: UsagePart): PicoUsd | undefined {
  const name = minutePriceOf[part];
  return name === undefined ? undefined : price[name];
}

/** One line of an explained charge. */
export interface ChargeLine {
  part: UsagePart | "request";
  quantity: number;
  unitPricePicoUsd: PicoUsd;
  /** The exact price per minute of a part that is priced so. */
  minutePricePicoUsd?: PicoUsd;
  amountNanoUsd: NanoUsd;
}

/**
 * Returns the lines of a charge, which add up to `chargeFor` exactly. Each is rounded down to the
 * nano-dollar, and the rest goes to the lines with the largest remainders.
 */
export function explainCharge(row: PriceRow, usage: Usage): ChargeLine[] {
  const price = effectivePrice(row, totalInputTokens(usage));
  const parts = allParts
    .filter((part) => usage[part] !== undefined)
    .map((part) => ({
      part: part as ChargeLine["part"],
      quantity: usage[part] ?? 0,
      unit: unitPrice(price, part),
      minute: minutePrice(price, part),
    }));
  if (price.request !== undefined)
    parts.push({ part: "request", quantity: 1, unit: price.request, minute: undefined });
  const lines = parts.map(({ part, quantity, unit, minute }) => {
    // In pico-USD times the milliseconds of a minute, so that no line is rounded twice.
    const amount = BigInt(quantity) * (minute ?? unit * perMinute);
    const nano = 1_000n * perMinute;
    return {
      line: {
        part,
        quantity,
        unitPricePicoUsd: unit,
        ...(minute !== undefined && { minutePricePicoUsd: minute }),
        amountNanoUsd: amount / nano,
      },
      remainder: amount % nano,
    };
  });
  let left = chargeFor(row, usage) - lines.reduce((sum, { line }) => sum + line.amountNanoUsd, 0n);
  for (const { line } of [...lines].sort((a, b) => Number(b.remainder - a.remainder))) {
    if (left <= 0n) break;
    line.amountNanoUsd += 1n;
    left -= 1n;
  }
  return lines.map(({ line }) => line);
}

/** The key of a table that matches every size or quality without a row of its own. */
const otherwise = "default";

/** Returns the rows of a table that a name may mean: its own, or all where it is open. */
function rowsOf<Row>(table: Readonly<Record<string, Row>>, name: string | undefined): Row[] {
  const asked = name?.toLowerCase();
  if (asked !== undefined && asked !== "auto") {
    const row = Object.hasOwn(table, asked) ? table[asked] : table[otherwise];
    if (row !== undefined) return [row];
  }
  return Object.values(table);
}

/** Returns the dearest price of a table, in pico-USD for each picture. */
export const dearestPicture = (pictures: PicturePrices): PicoUsd => dearestOf(pictures, {});

function dearestOf(pictures: PicturePrices, { size, quality }: PictureKind): PicoUsd {
  let dearest = 0n;
  for (const byQuality of rowsOf(pictures, size)) {
    for (const price of rowsOf(byQuality, quality)) if (price > dearest) dearest = price;
  }
  return dearest;
}

/**
 * Returns the pico-USD of one picture at the dearest size and quality that a kind leaves open. A
 * size or quality that the table does not know counts as the dearest.
 */
function heldPicture({ base, pictures }: PriceRow, kind: PictureKind): PicoUsd {
  return pictures === undefined ? (base.outputImages ?? 0n) : dearestOf(pictures, kind);
}

/**
 * Returns the pico-USD of one picture that was made. Where neither request nor answer names a
 * quality, vendors with a quality `standard` made that one.
 */
function chargedPicture(row: PriceRow, { size, quality }: PictureKind): PicoUsd {
  const { pictures } = row;
  const named =
    quality === undefined &&
    pictures !== undefined &&
    Object.values(pictures).every((byQuality) => Object.hasOwn(byQuality, "standard"))
      ? "standard"
      : quality;
  return heldPicture(row, {
    ...(size !== undefined && { size }),
    ...(named !== undefined && { quality: named }),
  });
}

/** The tokens by which a provider may count what another part of the vector counts in pieces. */
const tokenPartOf = {
  outputImages: "outputImageTokens",
  inputAudioMs: "inputAudioTokens",
  outputAudioMs: "outputAudioTokens",
  characters: "outputAudioTokens",
} as const satisfies Partial<Record<UsagePart, UsagePart>>;

const tokenParts = Object.keys(tokenPartOf) as (keyof typeof tokenPartOf)[];

/**
 * Returns whether a row prices a part both by piece and by token, so that the price by piece is
 * what the provider's tokens are expected to cost.
 */
const hasTwoPrices = ({ base }: PriceRow, part: keyof typeof tokenPartOf): boolean =>
  base[part] !== undefined && base[tokenPartOf[part]] !== undefined;

const timedParts = Object.keys(minutePrices) as (keyof typeof minutePrices)[];

const rowsByPrice = new WeakMap<PriceRow, Map<string, PriceRow>>();

/**
 * Returns the prices at which pictures and sound are charged: pictures at those of their size and
 * quality. Where a row prices a part by piece and by token, the tokens are charged if the provider
 * has counted them, and the pieces otherwise.
 */
export function priceOfMedia(
  row: PriceRow,
  { usage, picture = {} }: { usage: Usage; picture: PictureKind | undefined },
): PriceRow {
  if (!isMedia(usage)) return row;
  const changes: Partial<Record<keyof typeof tokenPartOf, PicoUsd>> = {};
  if (usage.outputImages !== undefined && row.pictures !== undefined)
    changes.outputImages = chargedPicture(row, picture);
  for (const part of tokenParts) {
    if (hasTwoPrices(row, part) && usage[tokenPartOf[part]] !== undefined) changes[part] = 0n;
  }
  const key = tokenParts.map((part) => changes[part] ?? "").join();
  let known = rowsByPrice.get(row);
  if (known === undefined) rowsByPrice.set(row, (known = new Map()));
  let priced = known.get(key);
  if (priced === undefined) {
    const base: PriceVector = { ...row.base, ...changes };
    // A minute is free where its tokens are charged.
    for (const part of timedParts) if (changes[part] !== undefined) base[minutePrices[part]] = 0n;
    known.set(key, (priced = { ...row, base }));
  }
  return priced;
}

/** What a request for pictures or sound uses at most. */
export interface MediaUse {
  /** Pictures, time and characters, and the tokens that a provider may count in their place. */
  usage: Usage;
  /** The size and quality of its pictures. */
  picture?: PictureKind;
}

/**
 * Returns the pico-USD that pictures and sound cost at most. Of a part that is priced by piece and
 * by token, the dearer counts.
 */
export function heldMedia(
  row: PriceRow,
  { vector, use: { usage, picture = {} } }: { vector: PriceVector; use: MediaUse },
): PicoUsd {
  let pico = 0n;
  const counted = new Set<UsagePart>();
  for (const part of mediaParts) {
    const count = BigInt(mostOf(row, part, usage[part] ?? 0));
    const each = part === "outputImages" ? heldPicture(row, picture) : (vector[part] ?? 0n);
    const pieces = count * each;
    const tokenPart = Object.hasOwn(tokenPartOf, part)
      ? tokenPartOf[part as keyof typeof tokenPartOf]
      : undefined;
    if (tokenPart === undefined || vector[part] === undefined || count === 0n) pico += pieces;
    else {
      counted.add(tokenPart);
      const tokens = BigInt(usage[tokenPart] ?? 0) * (vector[tokenPart] ?? 0n);
      pico += tokens > pieces && part !== "outputImages" ? tokens : pieces;
    }
  }
  for (const part of [...inputParts, ...outputParts]) {
    const count = usage[part];
    if (count !== undefined && !counted.has(part)) pico += BigInt(count) * unitPrice(vector, part);
  }
  return pico;
}

const mostOf = ({ minimumMs = 0 }: PriceRow, part: UsagePart, count: number): number =>
  part === "inputAudioMs" && count > 0 ? Math.max(count, minimumMs) : count;

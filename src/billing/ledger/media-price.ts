import type { PicoUsd } from "../../platform/kernel/money.ts";
import {
  inputParts,
  isMedia,
  mediaParts,
  outputParts,
  type PictureKind,
  type Usage,
  type UsagePart,
} from "../../platform/kernel/usage.ts";
import {
  minutePrices,
  unitPrice,
  type PicturePrices,
  type PriceRow,
  type PriceVector,
} from "./price.ts";

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

const countedParts = Object.keys(tokenPartOf) as (keyof typeof tokenPartOf)[];

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
  for (const part of countedParts) {
    if (hasTwoPrices(row, part) && usage[tokenPartOf[part]] !== undefined) changes[part] = 0n;
  }
  const key = countedParts.map((part) => changes[part] ?? "").join();
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

import {
  inputParts,
  outputParts,
  totalInputTokens,
  type Usage,
  type UsagePart,
} from "../../platform/kernel/usage.ts";
import { nanoFromPico, type NanoUsd, type PicoUsd } from "../../platform/kernel/money.ts";

/**
 * Prices in pico-USD per token; a part without its own price is charged as `fallbackParts` says.
 */
export interface PriceVector extends Partial<Record<UsagePart, PicoUsd>> {
  inputTokens: PicoUsd;
  outputTokens: PicoUsd;
  /** Pico-USD per request, beside the tokens. */
  request?: PicoUsd;
}

/** A price as it applies to one request, with the row and version that explain a charge later. */
export interface PriceRow {
  /** Stable id of the row and its version, such as `acme/large@2026-07-02`. */
  version: string;
  base: PriceVector;
  /** Whole-request rates once the total input is above a size, the largest first. */
  tiers?: readonly { aboveInputTokens: number; price: PriceVector }[];
}

/** Which price a part takes when it has none of its own. */
const fallbackParts = {
  cacheReadTokens: "inputTokens",
  cacheWriteTokens: "inputTokens",
  cacheWriteOneHourTokens: "cacheWriteTokens",
  inputAudioTokens: "inputTokens",
  inputImageTokens: "inputTokens",
  reasoningTokens: "outputTokens",
  outputAudioTokens: "outputTokens",
  outputImageTokens: "outputTokens",
} as const satisfies Partial<Record<UsagePart, UsagePart>>;

const allParts = [...inputParts, ...outputParts];

/** Pico-USD per token of one part, through its fallbacks. */
export function unitPrice(price: PriceVector, part: UsagePart): PicoUsd {
  const own = price[part];
  if (own !== undefined) return own;
  return part === "inputTokens" || part === "outputTokens"
    ? 0n
    : unitPrice(price, fallbackParts[part]);
}

/** The vector of the tier that the request's total input falls into. */
export function effectivePrice(row: PriceRow, inputTokens: number): PriceVector {
  const tier = row.tiers?.find((candidate) => inputTokens > candidate.aboveInputTokens);
  return tier ? tier.price : row.base;
}

/** The charge for a usage vector in nano-USD: exact in pico-USD, rounded half up once. */
export function chargeFor(row: PriceRow, usage: Usage): NanoUsd {
  const price = row.tiers === undefined ? row.base : effectivePrice(row, totalInputTokens(usage));
  let pico = price.request ?? 0n;
  for (const part of allParts) {
    const count = usage[part];
    if (count) pico += BigInt(count) * unitPrice(price, part);
  }
  return nanoFromPico(pico);
}

/** One line of an explained charge. */
export interface ChargeLine {
  part: UsagePart | "request";
  quantity: number;
  unitPricePicoUsd: PicoUsd;
  amountNanoUsd: NanoUsd;
}

/**
 * The lines of a charge, which add up to `chargeFor` exactly: each is floored to the nano-dollar
 * and what the rounding left over is given to the lines with the largest remainders.
 */
export function explainCharge(row: PriceRow, usage: Usage): ChargeLine[] {
  const price = effectivePrice(row, totalInputTokens(usage));
  const parts = allParts
    .filter((part) => usage[part] !== undefined)
    .map((part) => ({
      part: part as ChargeLine["part"],
      quantity: usage[part] ?? 0,
      unit: unitPrice(price, part),
    }));
  if (price.request !== undefined)
    parts.push({ part: "request", quantity: 1, unit: price.request });
  const lines = parts.map(({ part, quantity, unit }) => {
    const pico = BigInt(quantity) * unit;
    return {
      line: { part, quantity, unitPricePicoUsd: unit, amountNanoUsd: pico / 1_000n },
      remainder: pico % 1_000n,
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

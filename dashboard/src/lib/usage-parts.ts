import { requestCost, unitPrice } from "./format.ts";

/** Parts whose price is not by the million, with the quantity of the part in one unit. */
const units: Readonly<Record<string, { size: number; per: string }>> = {
  outputImages: { size: 1, per: "each" },
  inputAudioMs: { size: 60_000, per: "a minute" },
  outputAudioMs: { size: 60_000, per: "a minute" },
  outputVideoMs: { size: 1_000, per: "a second" },
  request: { size: 1, per: "each" },
};

/** Whether a part has a unit of its own. */
export const hasUnit = (part: string): boolean => units[part] !== undefined;

/** How much of a part there is, in the unit that its name says. */
export const quantityOf = (part: string, quantity: number): string =>
  Number((quantity / (units[part]?.size ?? 1)).toPrecision(6)).toLocaleString("en-US");

/** The price of a part in its unit; `usd` is that of a million of what the quantity counts. */
export function priceOf(part: string, usd: number): string {
  const unit = units[part];
  return unit === undefined
    ? unitPrice(usd)
    : `${requestCost((usd * unit.size) / 1_000_000)} ${unit.per}`;
}

import type { ConfiguredPayments } from "../../platform/config/setting-schemas.ts";
import { nanoUsdPerUsd, parseDecimal } from "../../platform/kernel/money.ts";

/**
 * The price of a top-up in whole cents: the credits, the fee on top, and the total that the card is
 * charged.
 */
export interface Quote {
  creditCents: number;
  feeCents: number;
  chargeCents: number;
}

/**
 * Returns the price of credits. The percentage is of the credits, not of the charge, and is rounded
 * up to a whole cent, so the fee is never less than its rule says.
 */
export function quoteOf(creditCents: number, { basisPoints, fixedCents }: FeeRule): Quote {
  const percentage = (BigInt(creditCents) * BigInt(basisPoints) + 9_999n) / 10_000n;
  const feeCents = Number(percentage) + fixedCents;
  return { creditCents, feeCents, chargeCents: creditCents + feeCents };
}

/**
 * Converts USD to whole cents; undefined where the amount has a fraction of a cent, or is not an
 * amount.
 */
export function centsFromUsd(usd: number): number | undefined {
  const tiny = parseDecimal(usd, 2 + partDigits);
  if (tiny === undefined || tiny % partsPerCent !== 0n) return undefined;
  return Number(tiny / partsPerCent);
}

/** The digits below a cent that are checked. A JSON number has no more of them. */
const partDigits = 18;
const partsPerCent = 10n ** BigInt(partDigits);
const nanoPerCent = nanoUsdPerUsd / 100n;

/** Converts cents to the USD number that clients read. */
export const usdFromCents = (cents: number): number => cents / 100;

/** Converts cents to nano-USD, the unit of the ledger. */
export const nanoFromCents = (cents: number): bigint => BigInt(cents) * nanoPerCent;

/** Formats cents for people, such as `11.05 USD`. */
export const centsText = (cents: number, currency: string): string =>
  `${cents < 0 ? "-" : ""}${Math.floor(Math.abs(cents) / 100)}.${String(Math.abs(cents) % 100).padStart(2, "0")} ${currency.toUpperCase()}`;

/** The operator's settings for card payments. */
export type PaymentSettings = ConfiguredPayments;

/** The fee that is added to a top-up for its processing. */
type FeeRule = PaymentSettings["fee"];

/** The seller of the credits, as printed on invoices. */
export type Seller = NonNullable<PaymentSettings["seller"]>;

/** Returns whether a key moves real money, which Stripe encodes in the key's name. */
export const isLiveKey = (secretKey: string): boolean => /^(sk|rk)_live_/.test(secretKey);

import type { ConfiguredPayments } from "../../platform/config/setting-schemas.ts";
import { nanoUsdPerUsd, parseDecimal } from "../../platform/kernel/money.ts";

/**
 * What a top-up costs: the credits, the fee on top, and the charge that the card sees. Whole cents.
 */
export interface Quote {
  creditCents: number;
  feeCents: number;
  chargeCents: number;
}

/**
 * The price of credits. The percentage is of the credits, not of the charge; a part of a cent
 * counts as a whole one, so the fee is never less than its rule says.
 */
export function quoteOf(creditCents: number, { basisPoints, fixedCents }: FeeRule): Quote {
  const percentage = (BigInt(creditCents) * BigInt(basisPoints) + 9_999n) / 10_000n;
  const feeCents = Number(percentage) + fixedCents;
  return { creditCents, feeCents, chargeCents: creditCents + feeCents };
}

/** USD as whole cents; undefined where the amount has a part of a cent, or is no amount. */
export function centsFromUsd(usd: number): number | undefined {
  const tiny = parseDecimal(usd, 2 + partDigits);
  if (tiny === undefined || tiny % partsPerCent !== 0n) return undefined;
  return Number(tiny / partsPerCent);
}

/** Digits below a cent that are looked at; a JSON number has no more of them. */
const partDigits = 18;
const partsPerCent = 10n ** BigInt(partDigits);
const nanoPerCent = nanoUsdPerUsd / 100n;

/** Cents as the USD number that clients read. */
export const usdFromCents = (cents: number): number => cents / 100;

/** Cents as nano-USD, the unit of the ledger. */
export const nanoFromCents = (cents: number): bigint => BigInt(cents) * nanoPerCent;

/** Cents as people read them, such as `11.05 USD`. */
export const centsText = (cents: number, currency: string): string =>
  `${cents < 0 ? "-" : ""}${Math.floor(Math.abs(cents) / 100)}.${String(Math.abs(cents) % 100).padStart(2, "0")} ${currency.toUpperCase()}`;

/** What the operator settled about card payments. */
export type PaymentSettings = ConfiguredPayments;

/** What is added to a top-up for its processing. */
type FeeRule = PaymentSettings["fee"];

/** Who sells the credits, as it is printed on invoices. */
export type Seller = NonNullable<PaymentSettings["seller"]>;

/** Whether a key moves real money; Stripe writes it into the key's name. */
export const isLiveKey = (secretKey: string): boolean => /^(sk|rk)_live_/.test(secretKey);

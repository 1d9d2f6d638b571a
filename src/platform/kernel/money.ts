/**
 * Money is counted in integer nano-USD (1 USD = 1,000,000,000 nano-USD) and prices in integer
 * pico-USD per unit (1 USD per million tokens = 1,000,000 pico-USD per token), so that no sum ever
 * passes through a binary fraction. JSON numbers exist only at the edge.
 */
export type NanoUsd = bigint;
export type PicoUsd = bigint;

/** Conversion factors: amounts are counted in nano-USD, prices in pico-USD. */
export const nanoUsdPerUsd = 1_000_000_000n;
export const picoUsdPerNanoUsd = 1_000n;

const decimalPattern = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,2}))?$/i;

/**
 * Parses a decimal text or number exactly, as an integer count of 10^-scale units. Digits beyond
 * the scale are rounded half up.
 */
export function parseDecimal(value: string | number, scale: number): bigint | undefined {
  const match = decimalPattern.exec(String(value).trim());
  if (!match) return undefined;
  const [, sign, whole = "0", fraction = "", exponentText = "0"] = match;
  const shift = Number(exponentText) + scale - fraction.length;
  const digits = BigInt(whole + fraction);
  const magnitude =
    shift >= 0
      ? digits * 10n ** BigInt(shift)
      : (digits + 10n ** BigInt(-shift) / 2n) / 10n ** BigInt(-shift);
  return sign ? -magnitude : magnitude;
}

/** Converts USD as text or JSON number to nano-USD; undefined when it is not a decimal number. */
export const nanoFromUsd = (usd: string | number): NanoUsd | undefined => parseDecimal(usd, 9);

/** The most nano-USD of one amount: a JSON number and a row of the database hold them exactly. */
const accountableNanoMax = 9_000_000n * nanoUsdPerUsd;

/** Returns whether a decimal number of USD is an amount that accounts can hold: 0 to 9 million. */
export function isAccountable(usd: string | number): boolean {
  const nano = nanoFromUsd(usd) ?? -1n;
  return nano >= 0n && nano <= accountableNanoMax;
}

/**
 * Converts USD per million tokens to pico-USD per token; undefined when it is not a decimal number.
 */
export const picoPerTokenFromUsdPerMillion = (usd: string | number): PicoUsd | undefined =>
  parseDecimal(usd, 6);

/**
 * Converts pico-USD, or a multiple of it, to nano-USD, rounded half up. This is the only place where
 * a charge is rounded.
 */
export const nanoFromPico = (pico: PicoUsd, times = 1n): NanoUsd =>
  (pico + (picoUsdPerNanoUsd * times) / 2n) / (picoUsdPerNanoUsd * times);

/**
 * Converts nano-USD to the JSON number of USD that clients read. Exact to the nano-dollar up to 9
 * million USD.
 */
export const usdFromNano = (nano: NanoUsd): number => Number(nano) / 1e9;

/**
 * Formats nano-USD as plain decimal text of USD, for amounts of any size: `String` would write
 * small charges with an exponent.
 */
export const usdText = (nano: NanoUsd): string =>
  usdFromNano(nano)
    .toFixed(9)
    .replace(/\.?0+$/, "");

const microFromNano = (nano: NanoUsd): bigint => (nano >= 0n ? nano + 500n : nano - 500n) / 1000n;

/** Converts nano-USD to USD, rounded to the six decimals of balances. */
export const usdSixDecimals = (nano: NanoUsd): number => Number(microFromNano(nano)) / 1e6;

/**
 * Converts a sum of two amounts, in nano-USD, to USD. The second part is the remainder, so that the
 * parts add up to the sum with the six decimals that are shown.
 */
export function sumSixDecimals(
  firstNano: NanoUsd,
  secondNano: NanoUsd,
): { sum: number; first: number; second: number } {
  const sum = microFromNano(firstNano + secondNano);
  const first = microFromNano(firstNano);
  return { sum: Number(sum) / 1e6, first: Number(first) / 1e6, second: Number(sum - first) / 1e6 };
}

/** Formats pico-USD per token as the shortest decimal text of USD per million tokens. */
export function usdPerMillionText(pico: PicoUsd): string {
  const fraction = (pico % 1_000_000n).toString().padStart(6, "0").replace(/0+$/, "");
  const whole = (pico / 1_000_000n).toString();
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

import type { GenerationRecord } from "../../insights/generation-record.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { ChargeLineObject } from "./generation-object.ts";

/** Where the money of a charge came from, in nano-USD. */
export interface ChargeSources {
  monthlyNano: bigint;
  topupNano: bigint;
  uncollectedNano: bigint;
}

/** Nano-USD as people write dollars, to the last digit that is there. */
const usd = (nano: bigint): string => {
  const digits = nano.toString().padStart(10, "0");
  const fraction = digits.slice(-9).replace(/0+$/, "").padEnd(2, "0");
  return `$${digits.slice(0, -9)}.${fraction}`;
};

const partNames: Readonly<Record<string, string>> = {
  inputTokens: "input tokens",
  cacheReadTokens: "tokens read from the cache",
  cacheWriteTokens: "tokens written to the cache",
  cacheWriteOneHourTokens: "tokens written to the cache for an hour",
  inputAudioTokens: "tokens of audio sent",
  inputImageTokens: "tokens of images sent",
  outputTokens: "output tokens",
  reasoningTokens: "reasoning tokens",
  outputAudioTokens: "tokens of audio made",
  outputImageTokens: "tokens of images made",
  request: "request",
};

const lineWords = ({
  part,
  quantity,
  usd_per_million: price,
  amount_usd: amount,
}: ChargeLineObject): string =>
  part === "request"
    ? `The request itself cost $${amount}.`
    : `${quantity} ${partNames[part] ?? part} at $${price} per million made $${amount}.`;

/** The attempts that failed, a sentence each. */
const failureWords = ({ attempts }: GenerationRecord, opening: string): string[] =>
  attempts
    .filter(({ outcome }) => outcome === "failed")
    .map(
      ({ model, provider, reason, status }) =>
        `${opening} ${model} at ${provider} failed (${reason ?? status ?? "no answer"}).`,
    );

/** What became of a request that was not charged; undefined for one that was settled. */
function unsettledWords(record: GenerationRecord): string[] | undefined {
  const { status, requestedModel, model, provider, detail } = record;
  const free = "Nothing was charged.";
  if (status === "cached") {
    return [
      `${requestedModel} was asked for, and an answer of ${model} at ${provider} was found in the cache.`,
      free,
    ];
  }
  if (status !== "failed") return undefined;
  return [
    `${requestedModel} was asked for, and no provider served it: the answer was ${detail.error?.code ?? "an error"}.`,
    ...failureWords(record, "The attempt at"),
    ...(detail.routing?.leftOut ?? []).map((left) => `Left out: ${left}.`),
    free,
  ];
}

function servedWords(record: GenerationRecord): string[] {
  const { requestedModel, model, provider, detail } = record;
  const words = [
    `${requestedModel} was asked for, and ${model} at ${provider} served it.`,
    ...failureWords(record, "Before that,"),
  ];
  const [order] = detail.routing?.order ?? [];
  if (order !== undefined)
    words.push(`It stood first in this order: ${detail.routing?.order.join("; ")}.`);
  return words;
}

function usageWords({ detail, status }: GenerationRecord): string[] {
  return [
    ...(status === "completed"
      ? []
      : [
          `The answer was ${status === "cut" ? "cut off" : "cancelled"}; what was delivered is charged.`,
        ]),
    ...(detail.usageEstimated ? ["The provider told no usage, so it was estimated."] : []),
    ...(detail.usageClamped ? ["The provider told an impossible usage, so it was clamped."] : []),
  ];
}

function moneyWords(
  { detail, costNanoUsd }: GenerationRecord,
  { monthlyNano, topupNano, uncollectedNano }: ChargeSources,
): string[] {
  const { outputCap } = detail;
  const words = [
    `${usd(BigInt(detail.holdNanoUsd))} was held for the most that it could cost.`,
    ...(outputCap === undefined
      ? []
      : [
          `The answer was bounded at ${outputCap} output tokens, the most that the balance and the limits could bear.`,
        ]),
  ];
  if (costNanoUsd === 0n && uncollectedNano === 0n)
    return [...words, "Nothing was charged, and all of the hold was freed."];
  const from = [
    ...(monthlyNano > 0n ? [`${usd(monthlyNano)} from monthly credits`] : []),
    ...(topupNano > 0n ? [`${usd(topupNano)} from top-ups`] : []),
  ];
  words.push(
    `${usd(costNanoUsd)} was charged${from.length === 0 ? "" : `: ${from.join(" and ")}`}.`,
  );
  if (uncollectedNano > 0n)
    words.push(
      `${usd(uncollectedNano)} was more than the balance or a limit could bear; the service bears it.`,
    );
  return words;
}

/** Why a request cost what it did, in sentences. */
export function chargeWords(
  record: GenerationRecord,
  { lines, sources }: { lines: readonly ChargeLineObject[]; sources: ChargeSources },
): string[] {
  const unsettled = unsettledWords(record);
  if (unsettled !== undefined) return unsettled;
  const { priceVersion, credentialSource } = record.detail;
  const pricing =
    credentialSource !== undefined
      ? [
          "A provider key of the caller's own or of the pool paid the provider, so the service charges nothing.",
        ]
      : lines.length === 0
        ? ["It is free: nothing is charged for what it used."]
        : [
            ...(priceVersion === null ? [] : [`The price is that of ${priceVersion}.`]),
            ...lines.map(lineWords),
          ];
  return [
    ...servedWords(record),
    ...usageWords(record),
    ...pricing,
    ...moneyWords(record, sources),
  ];
}

/** The sums of a charge's sources as JSON numbers of USD. */
export const sourcesObject = ({ monthlyNano, topupNano, uncollectedNano }: ChargeSources) => ({
  monthly_usd: usdFromNano(monthlyNano),
  topup_usd: usdFromNano(topupNano),
  uncollected_usd: usdFromNano(uncollectedNano),
});

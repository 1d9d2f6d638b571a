import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { lazily, type AnswerOf } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Answer } from "../../http/reply.ts";
import type { GenerationRecord } from "../../insights/generation-record.ts";
import { brand } from "../../platform/kernel/brand.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  chargeLines,
  generationObject,
  generationObjectSchema,
  type ChargeLineObject,
} from "./generation-object.ts";

/** The sources of a charge's money, in nano-USD. */
interface ChargeSources {
  monthlyNano: bigint;
  topupNano: bigint;
  uncollectedNano: bigint;
}

/** Formats nano-USD as dollars, to the last nonzero digit. */
const usd = (nano: bigint): string => {
  const digits = nano.toString().padStart(10, "0");
  const fraction = digits.slice(-9).replace(/0+$/, "").padEnd(2, "0");
  return `$${digits.slice(0, -9)}.${fraction}`;
};

const partNames: Readonly<Record<string, string>> = {
  inputTokens: "input tokens",
  cacheReadTokens: "tokens read from the cache",
  cacheReadAudioTokens: "tokens of audio read from the cache",
  cacheReadImageTokens: "tokens of images read from the cache",
  cacheWriteTokens: "tokens written to the cache",
  cacheWriteOneHourTokens: "tokens written to the cache for an hour",
  inputAudioTokens: "tokens of audio sent",
  inputImageTokens: "tokens of images sent",
  outputTokens: "output tokens",
  reasoningTokens: "reasoning tokens",
  outputAudioTokens: "tokens of audio made",
  outputImageTokens: "tokens of images made",
  searches: "searches",
  toolCalls: "tool calls",
  characters: "characters spoken",
  request: "request",
};

/** Units of parts whose prices are not per million, with the quantity of the part in one unit. */
const partUnits: Readonly<Record<string, { name: string; size: number; per: string }>> = {
  outputImages: { name: "images made", size: 1, per: "each" },
  inputAudioMs: { name: "minutes of audio sent", size: 60_000, per: "per minute" },
  outputAudioMs: { name: "minutes of audio made", size: 60_000, per: "per minute" },
  outputVideoMs: { name: "seconds of video made", size: 1_000, per: "per second" },
};

/** Returns a number without the noise of binary fractions. */
const rounded = (value: number): number => Number(value.toPrecision(12));

function lineWords({
  part,
  quantity,
  usd_per_million: price,
  amount_usd: amount,
}: ChargeLineObject): string {
  if (part === "request") return `The request itself cost $${amount}.`;
  const unit = partUnits[part];
  if (unit === undefined)
    return `${quantity} ${partNames[part] ?? part} at $${price} per million made $${amount}.`;
  const { name, size, per } = unit;
  const each = rounded((price * size) / 1e6);
  return `${rounded(quantity / size)} ${name} at $${each} ${per} made $${amount}.`;
}

/** Returns a sentence about each failed attempt. */
const failureWords = ({ attempts }: GenerationRecord, opening: string): string[] =>
  attempts
    .filter(({ outcome }) => outcome === "failed")
    .map(
      ({ model, provider, reason, status }) =>
        `${opening} ${model} at ${provider} failed (${reason ?? status ?? "no answer"}).`,
    );

/** Returns sentences about a request that was not charged; undefined for one that was settled. */
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
    ...(detail.usageEstimated ? ["The provider reported no usage, so it was estimated."] : []),
    ...(detail.usageClamped
      ? ["The provider reported an impossible usage, so it was clamped."]
      : []),
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

/** Returns sentences that explain the cost of a request. */
function chargeWords(
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

/** Returns the sums of a charge's sources as JSON numbers of USD. */
const sourcesObject = ({ monthlyNano, topupNano, uncollectedNano }: ChargeSources) => ({
  monthly_usd: usdFromNano(monthlyNano),
  topup_usd: usdFromNano(topupNano),
  uncollected_usd: usdFromNano(uncollectedNano),
});

async function answer(
  context: RequestContext<undefined, KnownCaller>,
  deps: Pick<Dependencies, "generations" | "responses">,
  id: string,
): Promise<Answer> {
  if (id === "") throw badField("id", "is required. Send the id of a response or its trace id.");
  const record = await generationOf(deps, { workspaceId: workspaceOf(context).id, id });
  if (record === undefined)
    throw new GatewayError("not_found", `There is no generation ${id} in this workspace.`);
  return context.json({ data: generationObject(record) });
}

/** Matches ids of responses, and the trace ids of their requests. */
const responseDigits = /^(?:resp_)?([0-9a-f]{32})$/;

/**
 * Returns the record of a request. For a background response that was restarted, that of its last
 * run.
 */
async function generationOf(
  { generations, responses }: Pick<Dependencies, "generations" | "responses">,
  { workspaceId, id }: { workspaceId: string; id: string },
): Promise<GenerationRecord | undefined> {
  const record = await generations.find(workspaceId, id);
  const digits = responseDigits.exec(id)?.[1];
  if (record !== undefined || digits === undefined) return record;
  const stored = await responses.find(workspaceId, `resp_${digits}`);
  if (stored === undefined || !stored.background) return undefined;
  const { [brand.metadataKey]: metadata } = JSON.parse(stored.recordText) as Record<
    string,
    { requestId?: unknown } | undefined
  >;
  return typeof metadata?.requestId === "string"
    ? generations.find(workspaceId, metadata.requestId)
    : undefined;
}

const shared = {
  method: "GET" as const,
  base: "api" as const,
  access: { llmKey: true as const },
  counting: "at-door" as const,
  tag: "Insights",
  response: () => z.object({ data: generationObjectSchema() }),
  encodeError: encodeContractError,
};

/** Returns tokens, cost, latency and the explained charge of one request, by any form of its id. */
export const generationById = defineEndpoint({
  ...shared,
  path: "/generation/:id",
  summary: "Show the usage and cost of a generation.",
  handle: (context, deps: Pick<Dependencies, "generations" | "responses">) =>
    answer(context, deps, context.param("id")),
});

/** The same, with the id as a query parameter, as OpenRouter's clients send it. */
export const generationByQuery = defineEndpoint({
  ...shared,
  path: "/generation",
  summary: "Show the usage and cost of a generation (id as query parameter).",
  query: z.object({ id: z.string() }),
  handle: (context, deps: Pick<Dependencies, "generations" | "responses">) =>
    answer(context, deps, context.query.get("id") ?? ""),
});

type Transfers = Awaited<ReturnType<Dependencies["ledgerStore"]["transfersOf"]>>;

const endings = { monthlyNano: "m", topupNano: "t", uncollectedNano: "u" } as const;

/** Returns the sources of a charge, from its transfers. */
function sourcesOf(transfers: Transfers): ChargeSources {
  const amountOf = (ending: string): bigint =>
    transfers.find(({ id }) => id.endsWith(ending))?.amountNano ?? 0n;
  return {
    monthlyNano: amountOf(endings.monthlyNano),
    topupNano: amountOf(endings.topupNano),
    uncollectedNano: amountOf(endings.uncollectedNano),
  };
}

/** The explanation of a charge, in sentences and in lines. */
export const chargeExplanationSchema = lazily(() =>
  z.object({
    id: z.string(),
    object: z.literal("charge_explanation"),
    explanation: z.array(z.string()),
    charged_usd: z.number(),
    lines: z.array(
      z.object({
        part: z.string(),
        quantity: z.number(),
        usd_per_million: z.number(),
        amount_usd: z.number(),
      }),
    ),
    sources: z.object({
      monthly_usd: z.number(),
      topup_usd: z.number(),
      uncollected_usd: z.number(),
    }),
    transfers: z.array(
      z.object({ id: z.string(), from: z.string(), amount_usd: z.number(), at: z.string() }),
    ),
    generation: generationObjectSchema(),
  }),
);

/** Explains the charge of a record. */
export async function chargeExplanation(
  record: GenerationRecord,
  { ledgerStore }: Pick<Dependencies, "ledgerStore">,
): Promise<AnswerOf<typeof chargeExplanationSchema>> {
  const transfers = await ledgerStore.transfersOf(record.detail.chargeId ?? record.id);
  const sources = sourcesOf(transfers);
  // Some requests are free regardless of their route's price.
  const lines = record.costNanoUsd + sources.uncollectedNano > 0n ? chargeLines(record) : [];
  return {
    id: record.id,
    object: "charge_explanation",
    explanation: chargeWords(record, { lines, sources }),
    charged_usd: usdFromNano(record.costNanoUsd),
    lines,
    sources: sourcesObject(sources),
    transfers: transfers.map(({ id: transferId, from, amountNano, atMs }) => ({
      id: transferId,
      from,
      amount_usd: usdFromNano(amountNano),
      at: new Date(atMs).toISOString(),
    })),
    generation: generationObject(record),
  };
}

/**
 * Explains a charge in sentences and in lines: who served, what was used at which price, what was
 * held, and where the money came from.
 */
export const explainGeneration = defineEndpoint({
  method: "GET",
  path: "/generation/:id/explain",
  base: "api",
  access: { llmKey: true, managementScope: "read:analytics", session: true },
  counting: "at-door",
  tag: "Insights",
  summary: "Explain the cost of a generation.",
  description:
    "Returns the charge line by line and in sentences. The lines add up to the charge, as do the transfers of the ledger, to the " +
    "nano-dollar.",
  response: chargeExplanationSchema,
  encodeError: encodeContractError,
  async handle(
    context,
    { generations, ledgerStore }: Pick<Dependencies, "generations" | "ledgerStore">,
  ) {
    const id = context.param("id");
    const record = await generations.find(workspaceOf(context).id, id);
    if (record === undefined)
      throw new GatewayError("not_found", `There is no generation ${id} in this workspace.`);
    return context.json(await chargeExplanation(record, { ledgerStore }));
  },
});

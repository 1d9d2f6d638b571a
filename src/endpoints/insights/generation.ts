import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Answer } from "../../http/request-context.ts";
import type { GenerationRecord } from "../../insights/generation-record.ts";
import { brand } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import type { Dependencies } from "../dependencies.ts";
import { chargeWords, sourcesObject, type ChargeSources } from "./charge-words.ts";
import { chargeLines, generationObject, generationObjectSchema } from "./generation-object.ts";

async function answer(
  context: RequestContext<undefined, KnownCaller>,
  deps: Dependencies,
  id: string,
): Promise<Answer> {
  if (id === "")
    throw new GatewayError(
      "bad_request",
      "id: is required. Send the id of a response or its trace id.",
      { param: "id" },
    );
  const record = await generationOf(deps, { workspaceId: workspaceOf(context).id, id });
  if (record === undefined)
    throw new GatewayError("not_found", `There is no generation ${id} in this workspace.`);
  return context.json({ data: generationObject(record) });
}

/** Ids of responses, and the trace ids of the requests that made them. */
const responseDigits = /^(?:resp_)?([0-9a-f]{32})$/;

/**
 * The record of a request; of a background response that was begun again after a restart, that of
 * its last run.
 */
async function generationOf(
  { generations, responses }: Dependencies,
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

/** Tokens, cost, latency and the explained charge of one request, by any form of its id. */
export const generationById = defineEndpoint({
  ...shared,
  path: "/generation/:id",
  summary: "Show what one request used and cost.",
  handle: (context, deps: Dependencies) => answer(context, deps, context.param("id")),
});

/** The same, with the id as a query parameter, as OpenRouter's clients send it. */
export const generationByQuery = defineEndpoint({
  ...shared,
  path: "/generation",
  summary: "Show what one request used and cost (id as query parameter).",
  query: z.object({ id: z.string() }),
  handle: (context, deps: Dependencies) => answer(context, deps, context.query.get("id") ?? ""),
});

type Transfers = Awaited<ReturnType<Dependencies["ledgerStore"]["transfersOf"]>>;

const endings = { monthlyNano: "m", topupNano: "t", uncollectedNano: "u" } as const;

/** What came from where, told by the transfers that stand. */
function sourcesOf(transfers: Transfers): ChargeSources {
  const amountOf = (ending: string): bigint =>
    transfers.find(({ id }) => id.endsWith(ending))?.amountNano ?? 0n;
  return {
    monthlyNano: amountOf(endings.monthlyNano),
    topupNano: amountOf(endings.topupNano),
    uncollectedNano: amountOf(endings.uncollectedNano),
  };
}

/** What a charge is made of, in words and in lines. */
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
  const transfers = await ledgerStore.transfersOf(record.id);
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
 * Explains a charge in words and in lines: who served, what was used at which price, what was held,
 * and where the money came from.
 */
export const explainGeneration = defineEndpoint({
  method: "GET",
  path: "/generation/:id/explain",
  base: "api",
  access: { llmKey: true, managementScope: "read:analytics", session: true },
  counting: "at-door",
  tag: "Insights",
  summary: "Explain what one request cost, in words.",
  description:
    "The lines add up to the charge, and so do the transfers of the ledger, to the nano-dollar.",
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

import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { chargeWords, sourcesObject, type ChargeSources } from "./charge-words.ts";
import { chargeLines, generationObject, generationObjectSchema } from "./generation-object.ts";

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
  response: z.object({
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
    generation: generationObjectSchema,
  }),
  encodeError: encodeContractError,
  async handle(
    context,
    { generations, ledgerStore }: Pick<Dependencies, "generations" | "ledgerStore">,
  ) {
    const id = context.param("id");
    const record = await generations.find(workspaceOf(context).id, id);
    if (record === undefined)
      throw new GatewayError("not_found", `There is no generation ${id} in this workspace.`);
    const transfers = await ledgerStore.transfersOf(record.id);
    const sources = sourcesOf(transfers);
    // Some requests are free regardless of their route's price.
    const lines = record.costNanoUsd + sources.uncollectedNano > 0n ? chargeLines(record) : [];
    return context.json({
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
    });
  },
});

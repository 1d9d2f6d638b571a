import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { explainCharge } from "../../billing/ledger/price.ts";
import { checkBody } from "../../http/check-body.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { PartSum } from "../../insights/record-usage.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { countedParts, inputParts, outputParts } from "../../platform/kernel/usage.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { range, rangeDaysDefault, rangeDaysMax, rangeOf } from "./analytics-query.ts";
import { priceVectorOf } from "./generation-object.ts";

const querySchema = z.object(range);

/** Every part in the order in which it is listed; the requests themselves come last. */
const partOrder: readonly string[] = [...inputParts, ...outputParts, ...countedParts, "request"];

/** A part of usage over a range, for all prices. */
interface PartLine {
  quantity: number;
  requests: number;
  costNano: bigint;
}

/** Returns what a quantity of a part costs at a price; 0 where nothing was charged. */
function costOf({ part, quantity, price }: PartSum): bigint {
  if (price === undefined) return 0n;
  const base = priceVectorOf(price);
  const lines = explainCharge(
    { version: "", base },
    part === "request" ? {} : { [part]: quantity },
  );
  const line = lines.find((each) => each.part === part);
  if (line === undefined) return 0n;
  return part === "request" ? line.amountNanoUsd * BigInt(quantity) : line.amountNanoUsd;
}

/**
 * Returns the lines of sums, one a part in the order of parts. The requests themselves have one
 * where something was charged for them.
 */
function partLines(sums: readonly PartSum[]): (readonly [part: string, line: PartLine])[] {
  const byPart = new Map<string, PartLine>();
  for (const sum of sums) {
    const costNano = costOf(sum);
    if (sum.part === "request" && costNano === 0n) continue;
    const line = byPart.get(sum.part) ?? { quantity: 0, requests: 0, costNano: 0n };
    line.quantity += sum.quantity;
    line.requests += sum.requests;
    line.costNano += costNano;
    byPart.set(sum.part, line);
  }
  return [...byPart].sort(([one], [other]) => partOrder.indexOf(one) - partOrder.indexOf(other));
}

/**
 * Returns the parts of what the workspace used: text read and written, cached, pictures, sound and
 * characters, each with what was charged for it.
 */
export const usageParts = defineEndpoint({
  method: "GET",
  base: "api",
  path: "/analytics/usage/parts",
  access: { managementScope: "read:analytics", session: true },
  counting: "at-door",
  tag: "Insights",
  encodeError: encodeContractError,
  summary: "Show the usage of the workspace by part.",
  description:
    "Parts are disjoint: no token is counted in two of them. They are those of GET /generation/{id}/explain, and " +
    "their quantities are tokens, pictures, milliseconds, characters or calls. The newest 60,000 records of the range are " +
    "counted, and counted_from says where they begin.",
  query: z.object({ from: z.string().optional(), to: z.string().optional() }),
  response: () =>
    z.object({
      object: z.literal("list"),
      from: z.string(),
      to: z.string(),
      counted_from: z
        .string()
        .nullable()
        .describe(
          "Where the counted records begin, if the range has more than may be read at a time; otherwise null.",
        ),
      data: z.array(
        z.object({
          part: z.string().describe("Part of the usage, such as inputTokens or outputImages."),
          quantity: z
            .int()
            .describe("Tokens, pictures, milliseconds, characters or calls of the part."),
          requests: z.int().describe("Requests that used some of it."),
          cost: z.number().describe("Charges for the part, in USD."),
        }),
      ),
    }),
  async handle(context, { insights, clock }: Pick<Dependencies, "insights" | "clock">) {
    const given = checkBody(querySchema, Object.fromEntries(context.query));
    const asked = rangeOf(given, {
      nowMs: clock.nowMs(),
      daysDefault: rangeDaysDefault,
      daysMax: rangeDaysMax.day,
    });
    const workspaceId = workspaceOf(context).id;
    const { sums, countedFromMs } = await insights.recordUsage.parts({ ...asked, workspaceId });
    return context.json({
      object: "list",
      from: new Date(asked.fromMs).toISOString(),
      to: new Date(asked.toMs).toISOString(),
      counted_from: countedFromMs === undefined ? null : new Date(countedFromMs).toISOString(),
      data: partLines(sums).map(([part, { quantity, requests, costNano }]) => ({
        part,
        quantity,
        requests,
        cost: usdFromNano(costNano),
      })),
    });
  },
});

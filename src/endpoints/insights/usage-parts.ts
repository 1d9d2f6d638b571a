import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { explainCharge } from "../../billing/ledger/price.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { PartSum } from "../../insights/usage/record-usage-store.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { countedParts, inputParts, outputParts } from "../../platform/kernel/usage.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { range, rangeDaysDefault, rangeDaysMax, rangeOf } from "./analytics-query.ts";
import { priceVectorOf } from "./generation-object.ts";

/** What parts can be divided by, with the member of a line that names it. */
const divisions = { model: "model", provider: "provider", key: "key_id" } as const;
const divisionNames = ["model", "provider", "key"] as const;
const divisionField = z.enum(divisionNames, `must be one of ${divisionNames.join(", ")}`);

const querySchema = z.object({
  ...range,
  group_by: divisionField.optional().describe("Divides each part once more."),
});

/** Every part in the order in which it is listed; the requests themselves come last. */
const partOrder: readonly string[] = [...inputParts, ...outputParts, ...countedParts, "request"];

/** A part of usage over a range, for all prices. */
interface PartLine {
  part: string;
  group: string | undefined;
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

const placeOf = ({ part }: PartLine): number => partOrder.indexOf(part);

/**
 * Returns the lines of sums, one a part in the order of parts, or one a part and group, the
 * costliest group first. The requests themselves have one where something was charged for them.
 */
function partLines(sums: readonly PartSum[]): PartLine[] {
  const lines = new Map<string, PartLine>();
  for (const sum of sums) {
    const costNano = costOf(sum);
    if (sum.part === "request" && costNano === 0n) continue;
    const { part, group } = sum;
    const name = JSON.stringify([part, group]);
    const line = lines.get(name) ?? { part, group, quantity: 0, requests: 0, costNano: 0n };
    line.quantity += sum.quantity;
    line.requests += sum.requests;
    line.costNano += costNano;
    lines.set(name, line);
  }
  return [...lines.values()].sort(
    (one, other) => placeOf(one) - placeOf(other) || Number(other.costNano - one.costNano),
  );
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
    "their quantities are tokens, pictures, milliseconds, characters or calls. group_by divides each part by model, provider or " +
    "key. The newest 60,000 records of the range are " +
    "counted, and counted_from says where they begin.",
  query: querySchema,
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
          model: z.string().optional().describe("The model, where parts are divided by model."),
          provider: z
            .string()
            .nullable()
            .optional()
            .describe("The provider, where parts are divided by provider; null where none served."),
          key_id: z.string().optional().describe("The key, where parts are divided by key."),
          quantity: z
            .int()
            .describe("Tokens, pictures, milliseconds, characters or calls of the part."),
          requests: z.int().describe("Requests that used some of it."),
          cost: z.number().describe("Charges for the part, in USD."),
        }),
      ),
    }),
  async handle(context, { insights, clock }: Pick<Dependencies, "insights" | "clock">) {
    const { group_by: division, ...given } = checkBody(
      querySchema,
      Object.fromEntries(context.query),
    );
    const named = division && divisions[division];
    const asked = rangeOf(given, {
      nowMs: clock.nowMs(),
      daysDefault: rangeDaysDefault,
      daysMax: rangeDaysMax.day,
    });
    const workspaceId = workspaceOf(context).id;
    const { sums, countedFromMs } = await insights.recordUsage.parts({
      ...asked,
      workspaceId,
      group: named,
    });
    return context.json({
      object: "list",
      from: new Date(asked.fromMs).toISOString(),
      to: new Date(asked.toMs).toISOString(),
      counted_from: countedFromMs === undefined ? null : new Date(countedFromMs).toISOString(),
      data: partLines(sums).map(({ part, group, quantity, requests, costNano }) => ({
        part,
        ...(named !== undefined && { [named]: group || (named === "provider" ? null : group) }),
        quantity,
        requests,
        cost: usdFromNano(costNano),
      })),
    });
  },
});

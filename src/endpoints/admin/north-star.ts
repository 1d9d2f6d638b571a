import { z } from "zod";
import { checkBody } from "../../http/check-body.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import type { DayRange } from "../../insights/service-usage-store.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { daysField, daysParameter, dayText, forOperators, lastDays } from "./admin-fields.ts";

const figuresSchema = z.object({
  active_workspaces: z.int(),
  active_keys: z.int(),
  new_workspaces: z.int(),
  requests: z.int(),
  success_rate: z.number().nullable(),
  tokens: z.int(),
  cost: z.number(),
});

async function figuresOf(
  range: DayRange,
  { insights: { service }, directory }: Dependencies,
): Promise<z.infer<typeof figuresSchema>> {
  const [active, lines, workspaces] = await Promise.all([
    service.active(range),
    service.sumsBy("day", range),
    service.workspaces(range),
  ]);
  const requests = workspaces.reduce((sum, each) => sum + each.requests, 0);
  const errors = workspaces.reduce((sum, each) => sum + each.errors, 0);
  const { fromDay, toDay } = range;
  return {
    active_workspaces: active.workspaces,
    active_keys: active.keys,
    new_workspaces: directory
      .allWorkspaces()
      .filter(({ createdAtMs }) => createdAtMs >= fromDay * dayMs && createdAtMs < toDay * dayMs)
      .length,
    requests,
    success_rate: requests === 0 ? null : (requests - errors) / requests,
    tokens: lines.reduce((sum, each) => sum + each.promptTokens + each.completionTokens, 0),
    cost: usdFromNano(workspaces.reduce((sum, each) => sum + each.costNanoUsd, 0n)),
  };
}

/** Whether the service is used more than before. */
export const northStar = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/north-star",
  summary: "Show how much the service is used, beside the days before (operators).",
  description:
    "Workspaces and keys that asked for anything in the last days (UTC), today included, how many answers were whole, and what " +
    "was used and spent; before has the same figures of as many days before these.",
  query: z.object({ days: daysParameter(30) }),
  response: figuresSchema.extend({
    object: z.literal("north_star"),
    from: z.string(),
    to: z.string(),
    days: z.int(),
    before: figuresSchema,
  }),
  async handle(context, deps: Dependencies) {
    const { days } = checkBody(
      z.object({ days: daysField(30) }),
      Object.fromEntries(context.query),
    );
    const range = lastDays(days, deps.clock.nowMs());
    const [figures, before] = await Promise.all([
      figuresOf(range, deps),
      figuresOf({ fromDay: range.fromDay - days, toDay: range.fromDay }, deps),
    ]);
    return context.json({
      object: "north_star",
      from: dayText(range.fromDay),
      to: dayText(range.toDay - 1),
      days,
      ...figures,
      before,
    });
  },
});

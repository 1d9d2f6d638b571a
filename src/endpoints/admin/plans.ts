import { z } from "zod";
import { planIds } from "../../identity/workspaces/workspace-store.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { forOperators } from "./admin-fields.ts";

export const listPlans = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/plans",
  summary: "List plans (operators).",
  description:
    "Returns each plan with its limits, its credits and the number of its workspaces. Plans are defined in the " +
    "configuration; PATCH /admin/workspaces/{id} assigns one.",
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(
        z.object({
          id: z.enum(planIds),
          object: z.literal("plan"),
          tier: z.string(),
          requests_per_minute: z.int(),
          five_hour_requests: z.int().nullable(),
          monthly_credits: z.number(),
          workspaces: z.int(),
        }),
      ),
    }),
  handle(
    context,
    {
      counters: { tiers },
      planCredits,
      directory,
    }: Pick<Dependencies, "counters" | "planCredits" | "directory">,
  ) {
    const workspaces = Map.groupBy(directory.allWorkspaces(), ({ plan }) => plan);
    return context.json({
      object: "list",
      data: planIds.map((id) => {
        const { id: tier, perMinute } = tiers.tierFor(id, "paid");
        return {
          id,
          object: "plan",
          tier,
          requests_per_minute: perMinute,
          five_hour_requests: tiers.quotaFor(id, "paid")?.requests ?? null,
          monthly_credits: usdFromNano(planCredits[id]?.monthlyCreditsNanoUsd ?? 0n),
          workspaces: workspaces.get(id)?.length ?? 0,
        };
      }),
    });
  },
});

import { defineEndpoint } from "../../access/define-endpoint.ts";
import type { UsageLine } from "../../insights/usage/usage-store.ts";
import type { Dependencies } from "../dependencies.ts";
import { usageObject, usageOf, usageSchema } from "../insights/analytics.ts";
import { analyticsQueries, readUsageQuery } from "../insights/analytics-query.ts";
import { forOperators } from "./admin-fields.ts";

export const workspaceUsage = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/workspaces/:id/usage",
  summary: "Show the usage of a workspace over time (operators).",
  description: "Takes and returns what GET /analytics/usage does.",
  query: analyticsQueries.usage,
  response: usageSchema,
  async handle(context, deps: Pick<Dependencies, "insights" | "clock" | "workspaceEditor">) {
    const { id } = deps.workspaceEditor.find(context.param("id"));
    const query = readUsageQuery(context.query, deps.clock.nowMs());
    return context.json(usageObject(query, await usageOf(query, deps, id)));
  },
});

/** Reads what the keys of a person in one workspace were used for, by day and model. */
async function personalLines(
  deps: Pick<Dependencies, "insights" | "llmKeys">,
  { workspaceId, userId }: { workspaceId: string; userId: string },
  query: ReturnType<typeof readUsageQuery>,
): Promise<UsageLine[]> {
  const keys = await deps.llmKeys.list(workspaceId, { includeDisabled: true });
  const own = new Set(
    keys.filter(({ creatorUserId }) => creatorUserId === userId).map(({ id }) => id),
  );
  if (own.size === 0) return [];
  const { ofRecords: _, ...counted } = query;
  const grouped = { ...counted, groupBy: ["model", "key_id"] as const };
  const { lines } = await usageOf(grouped, deps, workspaceId);
  return lines.filter(({ key_id: keyId }) => own.has(keyId ?? ""));
}

export const userUsage = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/users/:id/usage",
  summary: "Show the usage of a user's keys over time (operators).",
  description:
    "Sums the keys that the user created and that still exist, in all workspaces that the user is in, by model and key. " +
    "Takes and returns what GET /analytics/usage does; group_by has no effect.",
  query: analyticsQueries.usage,
  response: usageSchema,
  async handle(
    context,
    deps: Pick<Dependencies, "insights" | "clock" | "llmKeys" | "people" | "userEditor">,
  ) {
    const { id: userId } = await deps.userEditor.find(context.param("id"));
    const query = readUsageQuery(context.query, deps.clock.nowMs());
    const personal = await deps.people.sessions.personalWorkspaceId(userId);
    const shared = await deps.people.organizations.of(userId);
    const workspaceIds = [
      ...(personal === undefined ? [] : [personal]),
      ...shared.map(({ workspaceId }) => workspaceId),
    ];
    const lines: UsageLine[] = [];
    for (const workspaceId of workspaceIds)
      lines.push(...(await personalLines(deps, { workspaceId, userId }, query)));
    const sorted = lines.toSorted((one, other) => one.startMs - other.startMs);
    return context.json(usageObject(query, { lines: sorted, countedFromMs: undefined }));
  },
});

import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { UsageLine } from "../../insights/usage/usage-store.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { GatewayError, badField } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { byZonedDay, forAnalytics } from "./analytics-query.ts";

/** The days of which activity is shown, today's among them. */
const daysShown = 30;

const querySchema = z.object({
  date: z.iso.date("must be a date such as 2026-11-21").optional(),
  api_key_hash: z.string().optional(),
  user_id: z.string().optional(),
  workspace_id: z.string().optional(),
  group_by: z.literal("workspace", "must be workspace").optional(),
});

type ActivityQuery = z.infer<typeof querySchema>;

/** Source: npm @openrouter/sdk 1.3.19 and PyPI openrouter 1.3.84, `ActivityItem`. */
const activitySchema = lazily(() =>
  z.object({
    data: z.array(
      z.object({
        date: z.string().describe("Day in UTC."),
        model: z.string(),
        model_permaslug: z.string().describe("Copy of the model."),
        endpoint_id: z.string().describe("The provider and the model."),
        provider_name: z.string().describe("Name of the provider; empty where none was called."),
        requests: z.int(),
        prompt_tokens: z.int(),
        completion_tokens: z.int(),
        cached_tokens: z.int(),
        reasoning_tokens: z.int(),
        usage: z.number().describe("Charges in USD."),
        byok_usage_inference: z
          .literal(0)
          .describe("Always 0: GET /keys has what own provider keys were used for, by key."),
        workspace_id: z.string().optional().describe("The workspace, where grouped by it."),
      }),
    ),
  }),
);

type Activity = AnswerOf<typeof activitySchema>["data"];
type Services = Pick<Dependencies, "insights" | "clock" | "inference" | "llmKeys">;
type Asked = Pick<Services, "insights" | "clock" | "llmKeys"> & { workspaceId: string };

/** Returns the days that are asked for, as a range of time. Throws `bad_request` for older ones. */
function rangeOf({ date }: ActivityQuery, nowMs: number): { fromMs: number; toMs: number } {
  const toMs = (Math.floor(nowMs / dayMs) + 1) * dayMs;
  const fromMs = toMs - daysShown * dayMs;
  if (date === undefined) return { fromMs, toMs };
  const dateMs = Date.parse(date);
  if (dateMs < fromMs || dateMs >= toMs)
    throw badField("date", `must be among the last ${daysShown} days.`);
  return { fromMs: dateMs, toMs: dateMs + dayMs };
}

/** Returns the id of the workspace's key with a hash. Throws `not_found` where there is none. */
async function keyOf(hash: string, { llmKeys, workspaceId }: Asked): Promise<string> {
  const id = await llmKeys.idOfHash(hash);
  if (id !== undefined && (await llmKeys.creatorsOf(workspaceId, [id])).has(id)) return id;
  throw new GatewayError("not_found", "No key of this workspace has the hash of api_key_hash.");
}

/** Returns the sums of each day, model and provider, newest first; undefined where there are too many. */
async function linesOf(query: ActivityQuery, asked: Asked): Promise<UsageLine[] | undefined> {
  const { insights, clock, llmKeys, workspaceId } = asked;
  const { api_key_hash: hash, user_id: userId } = query;
  const keyId = hash === undefined ? undefined : await keyOf(hash, asked);
  const byKey = keyId !== undefined || userId !== undefined;
  const lines = await insights.usage.sums({
    ...rangeOf(query, clock.nowMs()),
    workspaceId,
    interval: "day",
    groupBy: ["model", ...(byKey ? (["key_id"] as const) : []), "provider"],
  });
  if (lines === undefined) return undefined;
  const ids = userId === undefined ? [] : lines.map(({ key_id: id = "" }) => id);
  const creators = await llmKeys.creatorsOf(workspaceId, ids);
  const counted = lines.flatMap(({ key_id: id = "", ...line }) => {
    const isOfKey = keyId === undefined || id === keyId;
    const isOfUser = userId === undefined || creators.get(id)?.creatorUserId === userId;
    return isOfKey && isOfUser ? [line] : [];
  });
  return byZonedDay(counted, "UTC").sort((one, other) => other.startMs - one.startMs);
}

/** Shows requests, tokens and charges by day, model and provider. */
export const listActivity = defineEndpoint({
  ...forAnalytics,
  path: "/activity",
  summary: "Show daily usage by model and provider, for OpenRouter's clients.",
  description:
    `The last ${daysShown} days in UTC, today among them, newest first. GET /analytics/usage has longer ranges, other time zones ` +
    "and more groups.",
  query: z.object({
    date: z.string().optional().describe("One day, such as 2026-11-21."),
    api_key_hash: z.string().optional().describe("Hash of a key: its usage alone."),
    user_id: z.string().optional().describe("Id of a user: the usage of keys that they created."),
    workspace_id: z.string().optional().describe("Id of the workspace; others are not found."),
    group_by: z.literal("workspace").optional().describe("Adds workspace_id."),
  }),
  response: activitySchema,
  async handle(context, services: Services) {
    const query = checkBody(querySchema, Object.fromEntries(context.query));
    const workspaceId = workspaceOf(context).id;
    if ((query.workspace_id ?? workspaceId) !== workspaceId)
      throw new GatewayError("not_found", "The credential belongs to another workspace.", {
        param: "workspace_id",
      });
    const lines = await linesOf(query, { ...services, workspaceId });
    if (lines === undefined) throw badField("date", "is needed, since all days are too much.");
    const { providers } = services.inference.catalog();
    const data: Activity = lines.map(({ model = "", provider = "", ...line }) => ({
      date: new Date(line.startMs).toISOString().slice(0, 10),
      model,
      model_permaslug: model,
      endpoint_id: `${provider}/${model}`,
      provider_name: providers.get(provider)?.name ?? provider,
      requests: line.requests,
      prompt_tokens: line.prompt_tokens,
      completion_tokens: line.completion_tokens,
      cached_tokens: line.cached_tokens,
      reasoning_tokens: line.reasoning_tokens,
      usage: usdFromNano(line.costNanoUsd),
      byok_usage_inference: 0,
      ...(query.group_by === "workspace" && { workspace_id: workspaceId }),
    }));
    return context.json({ data });
  },
});

import { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { UsageGroup, UsageLine } from "../../insights/usage/usage-store.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { readUsageQuery } from "./analytics-query.ts";
import { csvHeaders, csvLine } from "./csv.ts";

/**
 * The fields by which spending can be grouped. A user's spending is that of the keys that the user
 * created.
 */
const groups = {
  key: "key_id",
  user: "key_id",
  model: "model",
  provider: "provider",
} as const satisfies Record<string, UsageGroup>;
type SpendGroup = keyof typeof groups;

const querySchema = z.object({
  group_by: z
    .enum(
      Object.keys(groups) as [SpendGroup, ...SpendGroup[]],
      "must be key, user, model or provider",
    )
    .default("model"),
  format: z.enum(["json", "csv"], "must be json or csv").default("json"),
});

const columns = [
  "id",
  "name",
  "requests",
  "errors",
  "prompt_tokens",
  "completion_tokens",
  "cost",
] as const;

/** A line of a report. */
interface SpendLine {
  id: string;
  name: string | null;
  requests: number;
  errors: number;
  prompt_tokens: number;
  completion_tokens: number;
  costNano: bigint;
}

type Creators = Awaited<ReturnType<Dependencies["llmKeys"]["creatorsOf"]>>;

function subjectOf(
  line: UsageLine,
  { group, creators }: { group: SpendGroup; creators: Creators },
): { id: string; name: string | null } {
  if (group === "model" || group === "provider") return { id: line[group] ?? "", name: null };
  const id = line.key_id ?? "";
  const creator = creators.get(id);
  return group === "key"
    ? { id, name: creator?.name ?? null }
    : { id: creator?.creatorUserId ?? "", name: null };
}

/** Returns the sums by subject, most expensive first. */
function summed(
  lines: readonly UsageLine[],
  options: { group: SpendGroup; creators: Creators },
): SpendLine[] {
  const byId = new Map<string, SpendLine>();
  for (const line of lines) {
    const subject = subjectOf(line, options);
    const sum = byId.get(subject.id) ?? {
      ...subject,
      requests: 0,
      errors: 0,
      prompt_tokens: 0,
      completion_tokens: 0,
      costNano: 0n,
    };
    sum.requests += line.requests;
    sum.errors += line.errors;
    sum.prompt_tokens += line.prompt_tokens;
    sum.completion_tokens += line.completion_tokens;
    sum.costNano += line.costNanoUsd;
    byId.set(subject.id, sum);
  }
  return [...byId.values()].sort((one, other) =>
    one.costNano === other.costNano ? 0 : one.costNano < other.costNano ? 1 : -1,
  );
}

const lineObject = ({ costNano, ...line }: SpendLine) => ({ ...line, cost: usdFromNano(costNano) });

const csvText = (lines: readonly SpendLine[]): string =>
  [columns, ...lines.map(lineObject).map((line) => columns.map((column) => line[column]))]
    .map(csvLine)
    .join("");

/**
 * Returns what the workspace spent in a range of days, by key, user, model or provider, as JSON or
 * as a table for spreadsheets.
 */
export const spendReport = defineEndpoint({
  method: "GET",
  path: "/analytics/spend",
  base: "api",
  access: { managementScope: "read:analytics", session: true },
  counting: "at-door",
  tag: "Insights",
  summary: "Report the spend of the workspace.",
  description:
    "Covers whole days (UTC), highest spend first. Default range: the last 7 days; at most 366.",
  query: z.object({
    from: z.string().optional(),
    to: z.string().optional(),
    group_by: z.enum(["key", "user", "model", "provider"]).optional(),
    format: z.enum(["json", "csv"]).optional(),
  }),
  otherResponseTypes: ["text/csv"],
  response: () =>
    z.object({
      object: z.literal("spend_report"),
      from: z.string(),
      to: z.string(),
      group_by: z.string(),
      total_cost: z.number(),
      data: z.array(
        z.object({
          id: z.string(),
          name: z.string().nullable(),
          requests: z.int(),
          errors: z.int(),
          prompt_tokens: z.int(),
          completion_tokens: z.int(),
          cost: z.number(),
        }),
      ),
    }),
  encodeError: encodeContractError,
  async handle(
    context,
    { insights, llmKeys, clock }: Pick<Dependencies, "insights" | "llmKeys" | "clock">,
  ) {
    const { group_by: group, format, ...range } = readQuery(context.query, clock.nowMs());
    const workspaceId = workspaceOf(context).id;
    const lines = await insights.usage.sums({
      workspaceId,
      ...range,
      interval: "day",
      groupBy: [groups[group]],
      whole: true,
    });
    if (lines === undefined) {
      const message =
        "from: this range holds too much for one report. Ask for fewer days at a time.";
      throw new GatewayError("bad_request", message, { param: "from" });
    }
    const keyIds = lines.flatMap(({ key_id: id }) => id ?? []);
    const creators = await llmKeys.creatorsOf(workspaceId, keyIds);
    const report = summed(lines, { group, creators });
    if (format === "csv") {
      return new Response(csvText(report), {
        headers: { ...context.headers, ...csvHeaders(`spend-by-${group}.csv`) },
      });
    }
    return context.json({
      object: "spend_report",
      from: new Date(range.fromMs).toISOString(),
      to: new Date(range.toMs).toISOString(),
      group_by: group,
      total_cost: usdFromNano(report.reduce((sum, { costNano }) => sum + costNano, 0n)),
      data: report.map(lineObject),
    });
  },
});

/** Returns the parameters that are set. Throws `bad_request` with the invalid one. */
function readQuery(query: URLSearchParams, nowMs: number) {
  const days = new URLSearchParams({ interval: "day" });
  for (const name of ["from", "to"]) {
    const value = query.get(name);
    if (value !== null) days.set(name, value);
  }
  const { fromMs, toMs } = readUsageQuery(days, nowMs);
  return {
    ...checkBody(querySchema, Object.fromEntries(query)),
    fromMs: Math.floor(fromMs / dayMs) * dayMs,
    toMs: Math.ceil(toMs / dayMs) * dayMs,
  };
}

import { z } from "zod";
import { dayMs } from "../../platform/kernel/clock.ts";
import { defineTool } from "../tool.ts";

const lineSchema = z.looseObject({
  requests: z.number(),
  errors: z.number(),
  tokens: z.number(),
  cost: z.number(),
});
const answerSchema = z.looseObject({
  data: z.array(lineSchema.extend({ model: z.string().optional() })),
});

type Line = z.infer<typeof lineSchema>;

const sum = (lines: readonly Line[], of: (line: Line) => number): number =>
  lines.reduce((total, line) => total + of(line), 0);

const totalsOf = (lines: readonly Line[]) => ({
  requests: sum(lines, ({ requests }) => requests),
  errors: sum(lines, ({ errors }) => errors),
  tokens: sum(lines, ({ tokens }) => tokens),
  // The sums are binary fractions, so they are rounded to the nano-dollar, the unit of counting.
  cost: Math.round(sum(lines, ({ cost }) => cost) * 1e9) / 1e9,
});

const totalsSchema = z.looseObject({
  requests: z.int(),
  errors: z.int(),
  tokens: z.int(),
  cost: z.number(),
});

export const getUsage = defineTool({
  name: "get_usage",
  title: "Show usage",
  description:
    "Shows the requests, errors, tokens and cost in USD of the workspace over the last days, by day (`data`) and by model " +
    "(`models`, highest cost first), with totals.",
  scope: "read:analytics",
  effect: "nothing",
  endpoint: "GET /analytics/usage",
  output: z.looseObject({
    object: z.literal("list"),
    from: z.string(),
    to: z.string(),
    interval: z.string(),
    data: z.array(totalsSchema.extend({ bucket: z.string() })),
    models: z.array(totalsSchema.extend({ model: z.string() })),
    totals: totalsSchema,
  }),
  input: z.object({
    days: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(90, "must be at most 90")
      .default(7)
      .describe("Number of days, 1 to 90."),
  }),
  async run({ days }, { ask, nowMs }) {
    const query = { from: new Date(nowMs() - days * dayMs).toISOString(), interval: "day" };
    const [byDay, byModel] = await Promise.all([
      ask({ endpoint: "GET /analytics/usage", query }),
      ask({ endpoint: "GET /analytics/usage", query: { ...query, group_by: "model" } }),
    ]);
    const daily = answerSchema.parse(byDay);
    const models = Map.groupBy(answerSchema.parse(byModel).data, ({ model }) => model ?? "");
    return {
      ...daily,
      models: [...models]
        .map(([model, lines]) => ({ model, ...totalsOf(lines) }))
        .sort((one, other) => other.cost - one.cost),
      totals: totalsOf(daily.data),
    };
  },
});

import { z } from "zod";
import { defineTool } from "../../tool.ts";

export const adminUsageSummary = defineTool({
  name: "admin_usage_summary",
  title: "Show the usage of the service",
  description:
    "Shows the requests, tokens and cost of the whole service over the last days, by day.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/usage",
  input: z.object({
    days: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(366, "must be at most 366")
      .default(30)
      .describe("Number of days (UTC), today included, 1 to 366."),
  }),
  run: (query, { ask }) => ask({ endpoint: "GET /admin/usage", query }),
});

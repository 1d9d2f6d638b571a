import { z } from "zod";
import { defineTool } from "../../tool.ts";

export const adminErrorsOverview = defineTool({
  name: "admin_errors_overview",
  title: "Show failures",
  description: "Shows the failures of the last days by provider, model and workspace, most first.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/errors",
  input: z.object({
    days: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(366, "must be at most 366")
      .default(1)
      .describe("Number of days (UTC), today included, 1 to 366."),
  }),
  run: (query, { ask }) => ask({ endpoint: "GET /admin/errors", query }),
});

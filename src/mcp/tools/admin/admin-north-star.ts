import { z } from "zod";
import { defineTool } from "../../tool.ts";

export const adminNorthStar = defineTool({
  name: "admin_north_star",
  title: "Show growth figures",
  description:
    "Shows the growth of the service over the last days, compared with the days before: active workspaces and keys, answers, usage " +
    "and spend.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/north-star",
  input: z.object({
    days: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(366, "must be at most 366")
      .default(30)
      .describe("Number of days (UTC), today included, 1 to 366."),
  }),
  run: (query, { ask }) => ask({ endpoint: "GET /admin/north-star", query }),
});

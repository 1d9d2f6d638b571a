import { z } from "zod";
import { defineTool } from "../../tool.ts";

export const adminListUsers = defineTool({
  name: "admin_list_users",
  title: "List users",
  description: "Lists the users of the service, newest first.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/users",
  input: z.object({
    limit: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(200, "must be at most 200")
      .default(50)
      .describe("Maximum number of users, 1 to 200."),
    offset: z
      .int("must be a whole number")
      .min(0, "must be at least 0")
      .max(1_000_000, "must be at most 1000000")
      .default(0)
      .describe("Number of users to skip."),
    include_stale: z
      .boolean()
      .default(true)
      .describe("Whether to include users who have neither visited nor signed in for 90 days."),
  }),
  run: (query, { ask }) => ask({ endpoint: "GET /admin/users", query }),
});

import { z } from "zod";
import { defineTool } from "../../tool.ts";

export const adminGetUser = defineTool({
  name: "admin_get_user",
  title: "Show a user",
  description: "Shows a user with sign-in methods, sessions and organisations.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/users/:id",
  input: z.object({
    user_id: z
      .string("is required")
      .min(1, "is required")
      .max(200)
      .describe("Id of the user, from admin_list_users."),
  }),
  run: ({ user_id: id }, { ask }) => ask({ endpoint: "GET /admin/users/:id", params: { id } }),
});

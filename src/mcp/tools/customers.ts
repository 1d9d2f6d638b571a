import { z } from "zod";
import { defineTool } from "../tool.ts";

export const listCustomers = defineTool({
  name: "list_customers",
  title: "List customers",
  description:
    "Lists the end customers of the workspace, newest first: the plan of each, what is left of it, and what it used in its period, " +
    "with cost, price and margin in USD.",
  scope: "read:llm-keys",
  effect: "nothing",
  endpoint: "GET /customers",
  input: z.object({
    limit: z.int().min(1).max(200).default(50).describe("Most customers. Default: 50."),
    cursor: z.string().optional().describe("The `next_cursor` of the page before."),
  }),
  run: ({ limit, cursor }, { ask }) =>
    ask({ endpoint: "GET /customers", query: { limit, cursor } }),
});

export const getCustomer = defineTool({
  name: "get_customer",
  title: "Show a customer",
  description: "Shows an end customer: its plan, what is left, and what it used in its period.",
  scope: "read:llm-keys",
  effect: "nothing",
  endpoint: "GET /customers/:id",
  input: z.object({ id: z.string().describe("Its id, or the external_id that requests name.") }),
  run: ({ id }, { ask }) => ask({ endpoint: "GET /customers/:id", params: { id } }),
});

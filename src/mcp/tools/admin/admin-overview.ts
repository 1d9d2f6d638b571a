import { z } from "zod";
import { defineTool } from "../../tool.ts";

/** Shows an overview of the whole service. */
export const adminOverview = defineTool({
  name: "admin_overview",
  title: "Service overview",
  description:
    "Shows the service at a glance: workspaces, people, requests, money and what is in trouble.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/overview",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /admin/overview" }),
});

import { z } from "zod";
import { defineTool } from "../../tool.ts";

export const adminOverview = defineTool({
  name: "admin_overview",
  title: "Show an overview of the service",
  description:
    "Shows an overview of the service: workspaces, users, requests, money and current problems.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/overview",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /admin/overview" }),
});

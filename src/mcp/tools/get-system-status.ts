import { z } from "zod";
import { defineTool } from "../tool.ts";

export const getSystemStatus = defineTool({
  name: "get_system_status",
  title: "Show system status",
  description:
    "Shows the health of the service: its API, providers, routing and background jobs, and the latest status changes.",
  scope: null,
  effect: "nothing",
  endpoint: "GET /health",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /health" }),
});

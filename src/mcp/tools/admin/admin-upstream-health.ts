import { z } from "zod";
import { defineTool } from "../../tool.ts";

export const adminUpstreamHealth = defineTool({
  name: "admin_upstream_health",
  title: "Show the health of providers",
  description:
    "Shows the current state of each provider, and the providers that are excluded from routing.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/upstreams",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /admin/upstreams" }),
});

import { z } from "zod";
import { defineTool } from "../../tool.ts";

/** Shows the health of providers. */
export const adminUpstreamHealth = defineTool({
  name: "admin_upstream_health",
  title: "Health of providers",
  description: "Shows how each provider does at this moment, and which are kept out of routing.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/upstreams",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /admin/upstreams" }),
});

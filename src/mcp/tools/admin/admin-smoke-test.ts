import { z } from "zod";
import { defineTool } from "../../tool.ts";

export const adminSmokeTest = defineTool({
  name: "admin_smoke_test",
  title: "Run smoke tests",
  description:
    "Sends each provider with a platform credential a minimal real request now, at the platform's expense, and shows the results.",
  scope: null,
  operators: true,
  effect: "adds",
  endpoint: "POST /admin/smoke-tests",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "POST /admin/smoke-tests", body: {} }),
});

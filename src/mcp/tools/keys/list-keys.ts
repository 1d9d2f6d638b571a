import { z } from "zod";
import { defineTool } from "../../tool.ts";

export const listKeys = defineTool({
  name: "list_keys",
  title: "List LLM keys",
  description:
    "Lists the workspace's LLM keys with their spend and limits, newest first. Secrets are never shown.",
  scope: "read:llm-keys",
  effect: "nothing",
  endpoint: "GET /keys",
  input: z.object({
    include_disabled: z.boolean().default(false).describe("Whether to include disabled keys."),
  }),
  run: ({ include_disabled }, { ask }) =>
    ask({ endpoint: "GET /keys", query: { include_disabled } }),
});

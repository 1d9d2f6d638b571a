import { z } from "zod";
import { defineTool } from "../../tool.ts";

export const searchPublicHubs = defineTool({
  name: "search_public_hubs",
  title: "Search public hubs",
  description:
    "Lists the public hubs of all workspaces, newest first. With search, lists those that match every word.",
  scope: "read:hub",
  effect: "nothing",
  endpoint: "GET /hubs",
  input: z.object({
    search: z
      .string()
      .optional()
      .describe("Search words; each must match the beginning of a word."),
    limit: z.int().min(1).max(100).default(20).describe("Maximum number of hubs, 1 to 100."),
  }),
  run: ({ search, limit }, { ask }) =>
    ask({
      endpoint: "GET /hubs",
      query: { scope: "public", limit, ...(search ? { search } : {}) },
    }),
});

import { z } from "zod";
import { defineTool } from "../../tool.ts";

/** Finds public hubs. */
export const searchPublicHubs = defineTool({
  name: "search_public_hubs",
  title: "Search public hubs",
  description:
    "Lists public hubs of every workspace, newest first; with search, those that have every word.",
  scope: "read:hub",
  effect: "nothing",
  endpoint: "GET /hubs",
  input: z.object({ search: z.string().optional(), limit: z.int().min(1).max(100).default(20) }),
  run: ({ search, limit }, { ask }) =>
    ask({
      endpoint: "GET /hubs",
      query: { scope: "public", limit, ...(search ? { search } : {}) },
    }),
});

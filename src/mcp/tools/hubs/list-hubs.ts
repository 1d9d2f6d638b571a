import { z } from "zod";
import { defineTool } from "../../tool.ts";

/** Lists hubs. */
export const listHubs = defineTool({
  name: "list_hubs",
  title: "List hubs",
  description:
    "Lists the hubs of the workspace, newest first, at most 100: collections of skills, prompts, knowledge and plugins.",
  scope: "read:hub",
  effect: "nothing",
  endpoint: "GET /hubs",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /hubs", query: { limit: 100 } }),
});

import { z } from "zod";
import { defineTool } from "../../tool.ts";

export const listHubs = defineTool({
  name: "list_hubs",
  title: "List hubs",
  description:
    "Lists the hubs of the workspace, newest first, at most 100. A hub is a collection of skills, prompts, knowledge documents and " +
    "plugins.",
  scope: "read:hub",
  effect: "nothing",
  endpoint: "GET /hubs",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /hubs", query: { limit: 100 } }),
});

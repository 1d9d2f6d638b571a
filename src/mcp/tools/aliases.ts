import { z } from "zod";
import { defineTool } from "../tool.ts";

export const listAliases = defineTool({
  name: "list_aliases",
  title: "List aliases",
  description:
    "Lists the workspace's own names of models, newest first, with the models that each may mean. A request sends one as `model`.",
  scope: "read:presets",
  effect: "nothing",
  endpoint: "GET /aliases",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /aliases" }),
});

export const getAlias = defineTool({
  name: "get_alias",
  title: "Show an alias",
  description:
    "Shows a name of the workspace's own: the models that it means, with their shares, fallbacks and conditions.",
  scope: "read:presets",
  effect: "nothing",
  endpoint: "GET /aliases/:name",
  input: z.object({ name: z.string().describe("The name, from list_aliases.") }),
  run: ({ name }, { ask }) => ask({ endpoint: "GET /aliases/:name", params: { name } }),
});

import { z } from "zod";
import { defineTool } from "../tool.ts";

export const listPresets = defineTool({
  name: "list_presets",
  title: "List presets",
  description:
    'Lists the workspace\'s presets, newest first. A request uses one with model "@preset/<slug>".',
  scope: "read:presets",
  effect: "nothing",
  endpoint: "GET /presets",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /presets" }),
});

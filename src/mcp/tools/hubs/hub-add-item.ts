import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";
import { tagsField } from "./hub-fields.ts";

export const hubAddItem = defineTool({
  name: "hub_add_item",
  title: "Add an item to a hub",
  description: "Adds a knowledge document, skill, prompt or plugin to a hub of the workspace.",
  scope: "write:hub",
  effect: "adds",
  endpoint: "POST /hubs/:slug/items",
  output: z.looseObject({
    id: z.string(),
    object: z.string(),
    hub: z.string().nullable(),
    slug: z.string().nullable(),
  }),
  input: z.object({
    hub: z.string().describe("Slug of the hub."),
    body: z.string().describe("Text of the item, as Markdown."),
    kind: z
      .enum(["kb", "skill", "prompt", "plugin", "knowledge doc"])
      .default("kb")
      .describe("Kind of the item; kb is a knowledge document, also named knowledge doc."),
    name: z
      .string()
      .optional()
      .describe("Name of the item. Default: that of the front matter or the first heading."),
    slug: z.string().optional().describe("Slug of the item. Default: derived from the name."),
    ...tagsField,
    ...idempotencyField,
  }),
  run: ({ hub: slug, idempotency_key: idempotencyKey, ...item }, { ask }) =>
    ask({ endpoint: "POST /hubs/:slug/items", params: { slug }, idempotencyKey, body: item }),
});

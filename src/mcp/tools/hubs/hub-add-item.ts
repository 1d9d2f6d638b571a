import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";
import { tagsField } from "./hub-fields.ts";

/** Adds an item to a hub. */
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
    body: z.string(),
    kind: z.enum(["kb", "skill", "prompt", "plugin"]).default("kb"),
    name: z.string().optional(),
    slug: z.string().optional(),
    ...tagsField,
    ...idempotencyField,
  }),
  run: ({ hub: slug, idempotency_key: idempotencyKey, ...item }, { ask }) =>
    ask({ endpoint: "POST /hubs/:slug/items", params: { slug }, idempotencyKey, body: item }),
});

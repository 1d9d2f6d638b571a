import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";
import { visibilityOf } from "./hub-fields.ts";

export const createHub = defineTool({
  name: "create_hub",
  title: "Create a hub",
  description: "Creates a hub: a collection of skills, prompts, knowledge documents and plugins.",
  scope: "write:hub",
  effect: "adds",
  endpoint: "POST /hubs",
  input: z.object({
    name: z.string().describe("Name of the hub."),
    slug: z.string().optional().describe("Slug of the hub. Default: derived from the name."),
    description: z.string().optional().describe("Description of the hub, for people."),
    ...visibilityOf("workspace"),
    ...idempotencyField,
  }),
  run: ({ idempotency_key: idempotencyKey, ...body }, { ask }) =>
    ask({ endpoint: "POST /hubs", body, idempotencyKey }),
});

import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";
import { tagsField } from "./hub-fields.ts";

/** Publishes a skill. */
export const publishSkill = defineTool({
  name: "publish_skill",
  title: "Publish a skill",
  description:
    "Publishes an Agent Skill: a SKILL.md whose front matter has name and description. In a hub where one is named.",
  scope: "write:hub",
  effect: "adds",
  endpoint: "POST /skills",
  input: z.object({
    body: z.string().describe("The whole SKILL.md."),
    name: z.string().optional(),
    slug: z.string().optional(),
    ...tagsField,
    hub: z.string().optional().describe("Slug of the hub that gets it."),
    ...idempotencyField,
  }),
  run: ({ idempotency_key: idempotencyKey, ...body }, { ask }) =>
    ask({ endpoint: "POST /skills", body, idempotencyKey }),
});

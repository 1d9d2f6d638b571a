import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";
import { tagsField } from "./hub-fields.ts";

export const publishSkill = defineTool({
  name: "publish_skill",
  title: "Publish a skill",
  description:
    "Publishes an Agent Skill: a SKILL.md whose front matter has name and description. With hub, publishes it in that hub.",
  scope: "write:hub",
  effect: "adds",
  endpoint: "POST /skills",
  input: z.object({
    body: z.string().describe("The complete SKILL.md."),
    name: z
      .string()
      .optional()
      .describe("Name of the skill. Default: the name in the front matter."),
    slug: z.string().optional().describe("Slug of the skill. Default: derived from the name."),
    ...tagsField,
    hub: z.string().optional().describe("Slug of the hub to publish in."),
    ...idempotencyField,
  }),
  run: ({ idempotency_key: idempotencyKey, ...body }, { ask }) =>
    ask({ endpoint: "POST /skills", body, idempotencyKey }),
});

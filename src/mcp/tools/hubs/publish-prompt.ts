import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";
import { tagsField } from "./hub-fields.ts";

/** Publishes a prompt. */
export const publishPrompt = defineTool({
  name: "publish_prompt",
  title: "Publish a prompt",
  description:
    "Publishes a prompt. The workspace has it at once; others see it once an operator has approved it. " +
    "Its text is kept as it is.",
  scope: "write:hub",
  effect: "adds",
  endpoint: "POST /prompts",
  input: z.object({
    title: z.string(),
    description: z.string(),
    body: z.string().describe("The prompt itself."),
    category: z.string(),
    ...tagsField,
    platforms: z.array(z.string()).optional(),
    recommended_agents: z.array(z.string()).optional(),
    recommended_model: z.string().optional().describe("Id of a model."),
    ...idempotencyField,
  }),
  run: ({ idempotency_key: idempotencyKey, ...body }, { ask }) =>
    ask({ endpoint: "POST /prompts", body, idempotencyKey }),
});

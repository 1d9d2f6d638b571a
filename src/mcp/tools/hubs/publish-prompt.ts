import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";
import { tagsField } from "./hub-fields.ts";

export const publishPrompt = defineTool({
  name: "publish_prompt",
  title: "Publish a prompt",
  description:
    "Publishes a prompt. The workspace can use it immediately, other workspaces after an operator has approved it. The text is " +
    "stored unchanged.",
  scope: "write:hub",
  effect: "adds",
  endpoint: "POST /prompts",
  input: z.object({
    title: z.string().describe("Title of the prompt."),
    description: z.string().describe("Description of the prompt, for people."),
    body: z.string().describe("Text of the prompt."),
    category: z.string().describe("Category of the prompt."),
    ...tagsField,
    platforms: z.array(z.string()).optional().describe("Platforms that the prompt is made for."),
    recommended_agents: z
      .array(z.string())
      .optional()
      .describe("Agents that the prompt works well with."),
    recommended_model: z
      .string()
      .optional()
      .describe("Id of the model that the prompt works well with."),
    ...idempotencyField,
  }),
  run: ({ idempotency_key: idempotencyKey, ...body }, { ask }) =>
    ask({ endpoint: "POST /prompts", body, idempotencyKey }),
});

import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";
import { visibilityOf } from "./hub-fields.ts";

export const forkPrompt = defineTool({
  name: "fork_prompt",
  title: "Fork a prompt",
  description:
    "Copies a prompt into the workspace, optionally with another title or body. The copy is private unless visibility says " +
    "otherwise.",
  scope: "write:hub",
  effect: "adds",
  endpoint: "POST /prompts/:id/fork",
  input: z.object({
    prompt_id: z.string().describe("Id of the prompt to copy."),
    title: z.string().optional().describe("Title of the copy. Default: that of the original."),
    body: z.string().optional().describe("Text of the copy. Default: that of the original."),
    ...visibilityOf("private"),
    ...idempotencyField,
  }),
  run: ({ prompt_id: id, idempotency_key: idempotencyKey, ...body }, { ask }) =>
    ask({ endpoint: "POST /prompts/:id/fork", params: { id }, body, idempotencyKey }),
});

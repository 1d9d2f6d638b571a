import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";
import { visibilityOf } from "./hub-fields.ts";

/** Forks a prompt. */
export const forkPrompt = defineTool({
  name: "fork_prompt",
  title: "Fork a prompt",
  description:
    "Copies a prompt into the workspace, private unless visibility says otherwise, with another title or " +
    "body where they are given.",
  scope: "write:hub",
  effect: "adds",
  endpoint: "POST /prompts/:id/fork",
  input: z.object({
    prompt_id: z.string(),
    title: z.string().optional(),
    body: z.string().optional(),
    ...visibilityOf("private"),
    ...idempotencyField,
  }),
  run: ({ prompt_id: id, idempotency_key: idempotencyKey, ...body }, { ask }) =>
    ask({ endpoint: "POST /prompts/:id/fork", params: { id }, body, idempotencyKey }),
});

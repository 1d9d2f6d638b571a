import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";

export const revokeKey = defineTool({
  name: "revoke_key",
  title: "Delete an LLM key",
  description: "Deletes an LLM key. Its requests are refused from now on. This cannot be undone.",
  scope: "write:llm-keys",
  effect: "destroys",
  endpoint: "DELETE /keys/:hash",
  input: z.object({
    key_id: z
      .string("is required: the id of a key, as list_keys shows it")
      .trim()
      .min(1, "is required")
      .max(200)
      .describe("Id (`key_...`) or hash of the key, from list_keys."),
    ...idempotencyField,
  }),
  run: ({ key_id: hash, idempotency_key: idempotencyKey }, { ask }) =>
    ask({ endpoint: "DELETE /keys/:hash", params: { hash }, idempotencyKey }),
});

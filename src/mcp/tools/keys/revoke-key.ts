import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";

/** Revokes an LLM key. */
export const revokeKey = defineTool({
  name: "revoke_key",
  title: "Revoke an API key",
  description:
    "Deletes an LLM key. Requests with it are refused from now on; this cannot be undone.",
  scope: "write:llm-keys",
  effect: "destroys",
  endpoint: "DELETE /keys/:hash",
  input: z.object({
    key_id: z
      .string("is required: the id of a key, as list_keys shows it")
      .trim()
      .min(1, "is required")
      .max(200)
      .describe("The key's id (`key_...`) or its hash, from list_keys."),
    ...idempotencyField,
  }),
  run: ({ key_id: hash, idempotency_key: idempotencyKey }, { ask }) =>
    ask({ endpoint: "DELETE /keys/:hash", params: { hash }, idempotencyKey }),
});

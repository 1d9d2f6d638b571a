import { z } from "zod";
import { defineTool, idempotencyField } from "../tool.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";

export const listKeys = defineTool({
  name: "list_keys",
  title: "List LLM keys",
  description:
    "Lists the workspace's LLM keys with their spend and limits, newest first. Secrets are never shown.",
  scope: "read:llm-keys",
  effect: "nothing",
  endpoint: "GET /keys",
  input: z.object({
    include_disabled: z.boolean().default(false).describe("Whether to include disabled keys."),
  }),
  run: ({ include_disabled }, { ask }) =>
    ask({ endpoint: "GET /keys", query: { include_disabled } }),
});

const createdSchema = z.looseObject({ key: z.string(), data: z.looseObject({ id: z.string() }) });

const notice =
  "The secret in `key` is shown this once. Hand it to the person who asked for it or store it where it is needed, and do not " +
  "repeat it in later messages, logs or files.";

export const createKey = defineTool({
  name: "create_key",
  title: "Create an LLM key",
  description:
    "Creates an LLM key for inference. The secret is in this result only and is never shown again; do not repeat it.",
  scope: "write:llm-keys",
  effect: "adds",
  endpoint: "POST /keys",
  output: createdSchema.extend({ notice: z.string() }),
  input: z.object({
    name: z
      .string()
      .trim()
      .max(200)
      .optional()
      .describe("Name of the key, at most 200 characters."),
    label: z
      .string()
      .trim()
      .max(200)
      .optional()
      .describe(
        "Name of the key if `name` is not given. The record's label is always the masked secret.",
      ),
    rate_limit: z
      .int("must be a whole number")
      .positive("must be above 0")
      .optional()
      .describe("Requests per minute. Default: the limit of the plan."),
    ...idempotencyField,
  }),
  async run({ name, label, rate_limit, idempotency_key: idempotencyKey }, { ask }) {
    const called = name || label;
    if (!called)
      throw new GatewayError("name_required", "name: is required: what people call the key.", {
        param: "name",
      });
    const body = { name: called, ...(rate_limit === undefined ? {} : { rate_limit }) };
    return {
      ...createdSchema.parse(await ask({ endpoint: "POST /keys", body, idempotencyKey })),
      notice,
    };
  },
});

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

const answerSchema = z.looseObject({
  data: z.array(z.looseObject({ keys: z.array(z.looseObject({ enabled: z.boolean() })) })),
});

export const listByokKeys = defineTool({
  name: "list_byok_keys",
  title: "List provider keys",
  description:
    "Lists the workspace's own provider keys, masked, grouped by provider. The provider bills the requests that they serve; they " +
    "cost nothing here.",
  scope: "read:byok",
  effect: "nothing",
  endpoint: "GET /auth/byok",
  input: z.object({
    enabled_only: z.boolean().default(false).describe("Whether to omit disabled keys."),
  }),
  async run({ enabled_only: enabledOnly }, { ask }) {
    const answer = await ask({ endpoint: "GET /auth/byok" });
    if (!enabledOnly) return answer;
    const { data, ...rest } = answerSchema.parse(answer);
    const groups = data.map(({ keys, ...group }) => ({
      ...group,
      keys: keys.filter(({ enabled }) => enabled),
    }));
    return { ...rest, data: groups.filter(({ keys }) => keys.length > 0) };
  },
});

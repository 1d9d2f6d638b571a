import { z } from "zod";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { defineTool, idempotencyField } from "../../tool.ts";

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

import { z } from "zod";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { defineTool, idempotencyField } from "../../tool.ts";

export const adminGrantCredits = defineTool({
  name: "admin_grant_credits",
  title: "Grant credits",
  description:
    "Grants monthly credits to the personal workspace of a user. They expire at the end of the month (UTC). The grant is recorded " +
    "in the audit log. A repeated call with the same idempotency_key grants nothing more.",
  scope: null,
  operators: true,
  effect: "adds",
  endpoint: "POST /admin/grants",
  input: z.object({
    user_id: z
      .string("is required")
      .min(1, "is required")
      .max(100)
      .describe("Id of the user, from admin_list_users."),
    amount: z
      .number("is required: USD as a number")
      .positive("must be above 0")
      .max(1_000_000, "must be at most 1000000")
      .describe("Amount in USD, above 0, at most 1,000,000."),
    description: z
      .string("is required: why")
      .trim()
      .min(1, "is required: why")
      .max(500, "must have at most 500 characters")
      .describe("Reason for the grant, at most 500 characters."),
    confirm: z
      .boolean("is required: true, once a person has agreed to this grant")
      .describe("Whether a person agreed to the grant; must be true."),
    ...idempotencyField,
  }),
  async run({ confirm, ...body }, { ask }) {
    if (!confirm) {
      throw new GatewayError(
        "bad_request",
        `confirm: must be true. This gives ${body.user_id} ${body.amount} USD; ask a person first.`,
        {
          param: "confirm",
        },
      );
    }
    return await ask({ endpoint: "POST /admin/grants", body });
  },
});

import { z } from "zod";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { findRequestable, isDangerous } from "../../requestable-endpoints.ts";
import { endpointName, defineTool, idempotencyField } from "../../tool.ts";

/** Calls an endpoint of the account or administration plane. */
export const adminRequest = defineTool({
  name: "admin_request",
  title: "Call an administration endpoint",
  description:
    "Calls an endpoint that admin_list_endpoints names, with the caller's own credential and its checks. Everything but GET " +
    "changes something and needs confirm: true; ask a person first.",
  scope: null,
  operators: true,
  effect: "destroys",
  output: z.looseObject({ status: z.int(), body: z.unknown() }),
  input: z.object({
    method: z.enum(["GET", "POST", "PATCH", "DELETE"], "is required: GET, POST, PATCH or DELETE"),
    path: z
      .string("is required")
      .max(2_000)
      .describe("Such as /api/v1/admin/users/usr_1, without a query."),
    query: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
    body: z.record(z.string(), z.unknown(), "must be an object").optional(),
    confirm: z
      .boolean()
      .default(false)
      .describe("That a person agreed to what this request changes."),
    ...idempotencyField,
  }),
  async run(
    { method, path, query, body, confirm, idempotency_key: idempotencyKey },
    { request, endpoints },
  ) {
    const { endpoint, params } = findRequestable(endpoints, { method, path });
    if (isDangerous(endpoint) && !confirm) {
      const message = `confirm: must be true for ${method} ${path} (${endpoint.summary}), since it changes something. Ask a person first.`;
      throw new GatewayError("bad_request", message, { param: "confirm" });
    }
    const takesBody = endpoint.body !== undefined;
    return await request({
      endpoint: endpointName(endpoint),
      params,
      query,
      body: body ?? (takesBody ? {} : undefined),
      idempotencyKey,
    });
  },
});

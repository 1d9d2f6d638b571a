import { z } from "zod";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { findRequestable, isDangerous } from "../../requestable-endpoints.ts";
import { endpointName, defineTool, idempotencyField } from "../../tool.ts";

export const adminRequest = defineTool({
  name: "admin_request",
  title: "Call an administration endpoint",
  description:
    "Calls an endpoint that admin_list_endpoints lists, with the caller's own credential and its permissions. Every method except " +
    "GET changes something and requires confirm: true; ask a person first.",
  scope: null,
  operators: true,
  effect: "destroys",
  output: z.looseObject({ status: z.int(), body: z.unknown() }),
  input: z.object({
    method: z
      .enum(["GET", "POST", "PATCH", "DELETE"], "is required: GET, POST, PATCH or DELETE")
      .describe("HTTP method of the endpoint."),
    path: z
      .string("is required")
      .max(2_000)
      .describe("Path of the endpoint without a query, such as /api/v1/admin/users/usr_1."),
    query: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
      .optional()
      .describe("Query parameters by name."),
    body: z
      .record(z.string(), z.unknown(), "must be an object")
      .optional()
      .describe("JSON body of the request."),
    confirm: z
      .boolean()
      .default(false)
      .describe(
        "Whether a person agreed to the change. Required to be true for every method except GET.",
      ),
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
    const answer = await request({
      endpoint: endpointName(endpoint),
      params,
      query,
      body: body ?? (takesBody ? {} : undefined),
      idempotencyKey,
    });
    return { status: answer.status, body: answer.body };
  },
});

import { z } from "zod";
import { shownPath } from "../../http/endpoint.ts";
import { isDangerous, requestable, findRequestable } from "../requestable-endpoints.ts";
import { defineTool, type ToolEndpoint, endpointName, idempotencyField } from "../tool.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";

/** The most endpoints that are listed with their fields: a longer list would be mostly schemas. */
const detailedMax = 12;

const fieldsOf = ({ query, body }: ToolEndpoint) => ({
  ...(query === undefined
    ? {}
    : { query: z.toJSONSchema(query, { io: "input", unrepresentable: "any" }) }),
  ...(body === undefined
    ? {}
    : { body: z.toJSONSchema(body, { io: "input", unrepresentable: "any" }) }),
});

export const adminListEndpoints = defineTool({
  name: "admin_list_endpoints",
  title: "List administration endpoints",
  description:
    "Lists the endpoints that admin_request can call. Up to 12 results include the schemas of their query and body.",
  scope: null,
  operators: true,
  effect: "nothing",
  output: z.looseObject({
    object: z.literal("list"),
    data: z.array(
      z.looseObject({
        method: z.string(),
        path: z.string(),
        summary: z.string(),
        scope: z.string().nullable(),
        dangerous: z.boolean(),
      }),
    ),
  }),
  input: z.object({
    method: z
      .enum(["GET", "POST", "PATCH", "DELETE"], "must be GET, POST, PATCH or DELETE")
      .optional()
      .describe("HTTP method of the endpoints. Default: any."),
    search: z.string().max(200).optional().describe("Part of a path or a summary, ignoring case."),
  }),
  async run({ method, search = "" }, { endpoints }) {
    const text = search.toLowerCase();
    const found = requestable(endpoints).filter(
      (each) =>
        (method === undefined || each.method === method) &&
        `${shownPath(each)} ${each.summary}`.toLowerCase().includes(text),
    );
    return {
      object: "list",
      data: found.map((each) => ({
        method: each.method,
        path: shownPath(each),
        summary: each.summary,
        scope: each.access.managementScope ?? null,
        operators_only: each.access.operator === true,
        dangerous: isDangerous(each),
        ...(each.description === undefined ? {} : { description: each.description }),
        ...(found.length <= detailedMax ? fieldsOf(each) : {}),
      })),
    };
  },
});

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

export const adminOverview = defineTool({
  name: "admin_overview",
  title: "Show an overview of the service",
  description:
    "Shows an overview of the service: workspaces, users, requests, money and current problems.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/overview",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /admin/overview" }),
});

export const adminUsageSummary = defineTool({
  name: "admin_usage_summary",
  title: "Show the usage of the service",
  description:
    "Shows the requests, tokens and cost of the whole service over the last days, by day.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/usage",
  input: z.object({
    days: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(366, "must be at most 366")
      .default(30)
      .describe("Number of days (UTC), today included, 1 to 366."),
  }),
  run: (query, { ask }) => ask({ endpoint: "GET /admin/usage", query }),
});

export const adminNorthStar = defineTool({
  name: "admin_north_star",
  title: "Show growth figures",
  description:
    "Shows the growth of the service over the last days, compared with the days before: active workspaces and keys, answers, usage " +
    "and spend.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/north-star",
  input: z.object({
    days: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(366, "must be at most 366")
      .default(30)
      .describe("Number of days (UTC), today included, 1 to 366."),
  }),
  run: (query, { ask }) => ask({ endpoint: "GET /admin/north-star", query }),
});

export const adminListUsers = defineTool({
  name: "admin_list_users",
  title: "List users",
  description: "Lists the users of the service, newest first.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/users",
  input: z.object({
    limit: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(200, "must be at most 200")
      .default(50)
      .describe("Maximum number of users, 1 to 200."),
    offset: z
      .int("must be a whole number")
      .min(0, "must be at least 0")
      .max(1_000_000, "must be at most 1000000")
      .default(0)
      .describe("Number of users to skip."),
    include_stale: z
      .boolean()
      .default(true)
      .describe("Whether to include users who have neither visited nor signed in for 90 days."),
  }),
  run: (query, { ask }) => ask({ endpoint: "GET /admin/users", query }),
});

export const adminGetUser = defineTool({
  name: "admin_get_user",
  title: "Show a user",
  description: "Shows a user with sign-in methods, sessions and organisations.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/users/:id",
  input: z.object({
    user_id: z
      .string("is required")
      .min(1, "is required")
      .max(200)
      .describe("Id of the user, from admin_list_users."),
  }),
  run: ({ user_id: id }, { ask }) => ask({ endpoint: "GET /admin/users/:id", params: { id } }),
});

export const adminErrorsOverview = defineTool({
  name: "admin_errors_overview",
  title: "Show failures",
  description: "Shows the failures of the last days by provider, model and workspace, most first.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/errors",
  input: z.object({
    days: z
      .int("must be a whole number")
      .min(1, "must be at least 1")
      .max(366, "must be at most 366")
      .default(1)
      .describe("Number of days (UTC), today included, 1 to 366."),
  }),
  run: (query, { ask }) => ask({ endpoint: "GET /admin/errors", query }),
});

export const adminSmokeTest = defineTool({
  name: "admin_smoke_test",
  title: "Run smoke tests",
  description:
    "Sends each provider with a platform credential a minimal real request now, at the platform's expense, and shows the results.",
  scope: null,
  operators: true,
  effect: "adds",
  endpoint: "POST /admin/smoke-tests",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "POST /admin/smoke-tests", body: {} }),
});

export const adminUpstreamHealth = defineTool({
  name: "admin_upstream_health",
  title: "Show the health of providers",
  description:
    "Shows the current state of each provider, and the providers that are excluded from routing.",
  scope: null,
  operators: true,
  effect: "nothing",
  endpoint: "GET /admin/upstreams",
  input: z.object({}),
  run: (_, { ask }) => ask({ endpoint: "GET /admin/upstreams" }),
});

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
      throw badField(
        "confirm",
        `must be true. This gives ${body.user_id} ${body.amount} USD; ask a person first.`,
      );
    }
    return await ask({ endpoint: "POST /admin/grants", body });
  },
});

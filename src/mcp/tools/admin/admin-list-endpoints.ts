import { z } from "zod";
import { shownPath } from "../../../http/endpoint.ts";
import { isDangerous, requestable } from "../../requestable-endpoints.ts";
import { defineTool, type ToolEndpoint } from "../../tool.ts";

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

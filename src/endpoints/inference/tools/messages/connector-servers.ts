import { z } from "zod";
import type { CatalogModel } from "../../../../inference/catalog/model.ts";
import { anthropicMessages } from "../../../../inference/dialects/anthropic-messages/index.ts";
import { chatDialectOf } from "../../../../inference/pipeline/adapt.ts";
import type { ChatCall } from "../../../../inference/pipeline/inference-call.ts";
import { modelFor } from "../../../../inference/pipeline/plan/plan-call.ts";
import { badField } from "../../../../platform/kernel/errors.ts";
import type { Dependencies } from "../../../dependencies.ts";
import { roundCall } from "../round-call.ts";
import { withoutOnline } from "../asked-tools.ts";
import { mcpToolSchema } from "../mcp-tool-schema.ts";

/** A server that a request of Messages names (Anthropic's MCP connector, both of its betas). */
const serverSchema = z.looseObject({
  type: z.literal("url"),
  url: mcpToolSchema.shape.server_url.unwrap(),
  name: z.string().min(1).max(128),
  authorization_token: mcpToolSchema.shape.authorization,
  tool_configuration: z
    .looseObject({
      enabled: z.boolean().nullish(),
      allowed_tools: z.array(z.string()).nullish(),
    })
    .nullish(),
});

const enabledSchema = z.looseObject({ enabled: z.boolean().nullish() });

/** The tools of such a server, since the beta of 2025-11-20. */
const toolsetSchema = z.looseObject({
  type: z.literal("mcp_toolset"),
  mcp_server_name: z.string(),
  default_config: enabledSchema.nullish(),
  configs: z.record(z.string(), enabledSchema).nullish(),
});

type ConnectorServer = z.infer<typeof serverSchema>;
type Toolset = z.infer<typeof toolsetSchema>;

function parsed<Schema extends z.ZodType>(
  schema: Schema,
  { value, place }: { value: unknown; place: string },
): z.infer<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const param = [place, ...(issue?.path ?? [])].join(".");
  throw badField(param, issue?.message ?? "is invalid");
}

const isToolset = (tool: unknown): boolean =>
  (Object(tool) as { type?: unknown }).type === "mcp_toolset";

/** Returns whether every provider of a model connects to the servers of a request itself. */
const connectsItself = ({ routes }: CatalogModel): boolean =>
  routes.every((route) => chatDialectOf(route) === "anthropic-messages");

/** Returns a server as a tool of the gateway. */
const toolOf = (
  { url, name, authorization_token: authorization }: ConnectorServer,
  filters: Readonly<Record<string, unknown>>,
) => ({
  type: "mcp",
  server_label: name,
  server_url: url,
  // The connector asks no one before it calls.
  require_approval: "never",
  ...(authorization && { authorization }),
  ...filters,
});

/** Returns which tools of a server a request leaves, in the form of the gateway's tools. */
function filtersOf({ default_config: usual, configs }: Toolset): Record<string, unknown> {
  const named = Object.entries(configs ?? {});
  return usual?.enabled === false
    ? { allowed_tools: named.filter(([, { enabled }]) => enabled).map(([name]) => name) }
    : {
        excluded_tools: named.filter(([, { enabled }]) => enabled === false).map(([name]) => name),
      };
}

/** Returns the tools of the servers: of those that toolsets name, or of all in the older form. */
function toolsFrom(servers: readonly ConnectorServer[], tools: readonly unknown[]): unknown[] {
  if (!tools.some(isToolset))
    return servers
      .filter(({ tool_configuration: configured }) => configured?.enabled !== false)
      .map((server) => {
        const allowed = server.tool_configuration?.allowed_tools;
        return toolOf(server, allowed ? { allowed_tools: allowed } : {});
      });
  const left = new Map(servers.map((server) => [server.name, server]));
  const found = tools.flatMap((value, index) => {
    if (!isToolset(value)) return [];
    const place = `tools[${index}]`;
    const toolset = parsed(toolsetSchema, { value, place });
    const server = left.get(toolset.mcp_server_name);
    if (server === undefined)
      throw badField(
        `${place}.mcp_server_name`,
        "names no server of mcp_servers, or one that another mcp_toolset names",
      );
    left.delete(server.name);
    return [toolOf(server, filtersOf(toolset))];
  });
  const [unused] = left.keys();
  if (unused === undefined) return found;
  throw badField("mcp_servers", `${JSON.stringify(unused)} is named by no mcp_toolset of tools`);
}

/**
 * Returns a request of Messages whose `mcp_servers` are tools that the gateway runs; the request
 * itself where it names none, and where every provider of its model connects to them. Throws
 * `bad_request` that names the invalid member.
 */
export function withConnectorTools(
  { inference, clock }: Pick<Dependencies, "inference" | "clock">,
  call: ChatCall,
): ChatCall {
  const { mcp_servers: sent, tools = [] } = call.body;
  if (!Array.isArray(sent) || sent.length === 0 || !Array.isArray(tools)) return call;
  const id = String(withoutOnline(call.body["model"]));
  if (connectsItself(modelFor(inference, { ...call, id }).model)) return call;
  const servers = sent.map((value: unknown, index) =>
    parsed(serverSchema, { value, place: `mcp_servers[${index}]` }),
  );
  const own = tools.filter((tool: unknown) => !isToolset(tool));
  return roundCall(call, {
    dialect: anthropicMessages,
    isFirst: true,
    nowMs: clock.nowMs(),
    edits: new Map<string, unknown>([
      ["mcp_servers", undefined],
      ["tools", [...own, ...toolsFrom(servers, tools)]],
    ]),
  });
}

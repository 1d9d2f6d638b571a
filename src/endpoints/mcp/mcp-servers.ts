import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { type AccountCaller, creatorIdOf, requireOperator } from "../../identity/keys/caller.ts";
import type { ReadServer } from "../../mcp/gateway/exposed-tools.ts";
import type { ServerHealth } from "../../mcp/gateway/server-watch.ts";
import type { WorkspaceServer } from "../../mcp/gateway/upstream-server-store.ts";
import {
  allServers,
  defaultResultBytes,
  defaultTimeoutMs,
  type PinnedTool,
  type ServerAuth,
  serverIdPattern,
  type ServerUser,
  type UpstreamServer,
  usesOauth,
} from "../../mcp/gateway/upstream-server.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { nanoFromUsd, usdFromNano } from "../../platform/kernel/money.ts";
import { accountBodyBytesMax, plainText } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";

/** Headers that the gateway or the protocol sets itself. */
const reservedHeaders: ReadonlySet<string> = new Set([
  "host",
  "content-length",
  "content-type",
  "connection",
  "transfer-encoding",
  "accept",
  "mcp-session-id",
  "mcp-protocol-version",
]);

const headersField = z
  .record(
    z
      .string()
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, "must be names of HTTP headers")
      .refine((name) => !reservedHeaders.has(name.toLowerCase()), "is set by the gateway"),
    z
      .string()
      .regex(/^[\t\x20-\x7e]{1,8192}$/, "must be printable ASCII, as a header can carry it"),
  )
  .refine((headers) => Object.keys(headers).length <= 20, "must be at most 20 headers");

const oauthFields = {
  client_id: z.string().min(1).max(500).optional(),
  client_secret: z.string().min(1).max(2_000).optional(),
  scope: z.string().min(1).max(2_000).optional(),
};

const authField = z.discriminatedUnion(
  "type",
  [
    z.strictObject({ type: z.literal("none") }),
    z.strictObject({ type: z.literal("headers"), headers: headersField }),
    z.strictObject({ type: z.literal("oauth"), ...oauthFields }),
    z.strictObject({ type: z.literal("oauth_per_person"), ...oauthFields }),
  ],
  "must have the type none, headers, oauth or oauth_per_person",
);

const urlField = z
  .string("is required: the address of the server")
  .trim()
  .max(2_000)
  .refine((url) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol), "must be a URL");

const priceField = z.union([z.string(), z.number()]).refine((price) => {
  const nano = nanoFromUsd(price) ?? -1n;
  return nano >= 0n && nano <= 1_000_000_000_000n;
}, 'must be an amount of USD up to 1000, such as "0.002"');

const serverFields = {
  name: plainText(200).trim().min(1).optional().describe("Name for people. Default: the id."),
  auth: authField
    .optional()
    .describe("How the gateway authenticates to the server. Default: none."),
  allowed_tools: z
    .array(z.string().min(1).max(256))
    .max(1_000)
    .nullish()
    .describe("Tools that may be listed and called; null means all."),
  price_per_call: priceField.optional().describe("Price of a call in USD. Default: 0."),
  timeout_ms: z.int().min(100).max(600_000).optional().describe("Default: 60000."),
  result_bytes_max: z
    .int()
    .min(1_024)
    .max(8_388_608)
    .optional()
    .describe("Largest result; longer ones are cut with a notice. Default: 262144."),
};

const transportField = z
  .literal(
    "streamable_http",
    "must be streamable_http; stdio servers come from the operator's configuration file",
  )
  .optional();

const newServerSchema = z.strictObject({
  id: z
    .string()
    .regex(serverIdPattern, "must be 1 to 23 lower-case letters, digits and dashes, no dash first")
    .refine((id) => id !== allServers, "is the name of all servers together; choose another")
    .optional()
    .describe("Name of the server in paths and labels. Default: made of its name."),
  url: urlField,
  transport: transportField,
  ...serverFields,
});

const serverChangesSchema = z.strictObject({
  id: z.undefined("cannot be changed; register another server and delete this one").optional(),
  url: urlField.optional(),
  transport: transportField,
  ...serverFields,
});

const refreshSchema = z.strictObject({
  accept: z
    .union([z.literal(true), z.array(z.string()).max(1_000)])
    .optional()
    .describe("Tools whose changed definitions are accepted; true means all."),
});

const toolSchema = z.object({
  name: z.string(),
  title: z.string().nullable(),
  description: z.string().nullable(),
  input_schema: z.looseObject({}),
  annotations: z.looseObject({}).nullable(),
  hash: z.string(),
  status: z.enum(["active", "not_allowed", "changed", "gone"]),
  changed: z
    .object({
      description: z.string().nullable(),
      input_schema: z.looseObject({}),
      annotations: z.looseObject({}).nullable(),
      hash: z.string(),
    })
    .nullable(),
});

const healthSchema = z.object({
  circuit: z.enum(["closed", "open"]),
  failures: z.int(),
  retry_at: z.string().nullable(),
  latency_ms: z.number().nullable(),
  last_call_at: z.string().nullable(),
});

const healthObject = (health: ServerHealth): z.infer<typeof healthSchema> => ({
  circuit: health.circuit,
  failures: health.failures,
  retry_at: isoOrNull(health.retryAtMs),
  latency_ms: health.latencyMs,
  last_call_at: isoOrNull(health.lastCallAtMs),
});

const serverObjectSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("mcp_server"),
      name: z.string(),
      source: z.enum(["operator", "workspace"]),
      transport: z.enum(["streamable_http", "stdio"]),
      url: z.string().nullable(),
      auth: z.object({ type: z.string(), headers: z.array(z.string()).optional() }),
      allowed_tools: z.array(z.string()).nullable(),
      price_per_call: z.number(),
      timeout_ms: z.int(),
      result_bytes_max: z.int(),
      status: z.enum(["ready", "unreachable", "not_connected"]),
      error: z.string().nullable(),
      connected: z.boolean().nullable(),
      health: healthSchema,
      tools: z.array(toolSchema),
      checked_at: z.string().nullable(),
      created_at: z.string().nullable(),
      updated_at: z.string().nullable(),
    })
    .meta({ id: "McpServer" }),
);

const statusOf = ({ allowedTools }: UpstreamServer, tool: PinnedTool) => {
  if (tool.gone) return "gone" as const;
  if (tool.changed !== undefined) return "changed" as const;
  return (allowedTools?.includes(tool.definition.name) ?? true)
    ? ("active" as const)
    : ("not_allowed" as const);
};

const definitionObject = ({ definition, hash }: Pick<PinnedTool, "definition" | "hash">) => ({
  description: definition.description ?? null,
  input_schema: definition.inputSchema,
  annotations: definition.annotations ?? null,
  hash,
});

const toolObject = (server: UpstreamServer, tool: PinnedTool): z.infer<typeof toolSchema> => ({
  name: tool.definition.name,
  title: tool.definition.title ?? tool.definition.annotations?.title ?? null,
  ...definitionObject(tool),
  status: statusOf(server, tool),
  changed: tool.changed === undefined ? null : definitionObject(tool.changed),
});

/** Returns the public record of a server. Values of headers and arguments are never shown. */
function serverObject(
  { server, tools, error, checkedAtMs, needsConnection }: ReadServer,
  health: ServerHealth,
): AnswerOf<typeof serverObjectSchema> {
  const { target, auth } = server;
  return {
    id: server.id,
    object: "mcp_server",
    name: server.name,
    source: server.workspaceId === null ? "operator" : "workspace",
    transport: target.transport === "stdio" ? "stdio" : "streamable_http",
    url: target.transport !== "streamable_http" || server.workspaceId === null ? null : target.url,
    auth: {
      type: auth.type,
      ...(auth.type === "headers" && { headers: Object.keys(auth.headers) }),
    },
    allowed_tools: server.allowedTools === null ? null : [...server.allowedTools],
    price_per_call: usdFromNano(server.priceNanoUsd),
    timeout_ms: server.timeoutMs,
    result_bytes_max: server.resultBytesMax,
    status: needsConnection ? "not_connected" : error === null ? "ready" : "unreachable",
    error,
    connected: usesOauth(server) ? needsConnection !== true : null,
    health: healthObject(health),
    tools: tools.map((tool) => toolObject(server, tool)),
    checked_at: isoOrNull(checkedAtMs),
    created_at: isoOrNull(server.createdAtMs),
    updated_at: isoOrNull(server.updatedAtMs),
  };
}

const shared = {
  base: "api",
  counting: "at-door",
  tag: "MCP",
  encodeError: encodeContractError,
} as const;
const reads = { managementScope: "read:connections", session: true } as const;
const writes = { managementScope: "write:connections", session: true } as const;

type AccountContext = RequestContext<unknown, AccountCaller>;

const workspaceIdOf = ({ caller }: AccountContext): string => caller.workspace.id;

/** The session in which lists of tools are read for the workspace, with the caller's own tokens. */
const readerOf = (context: AccountContext): ServerUser => ({
  session: `${workspaceIdOf(context)} ${creatorIdOf(context.caller)} tools`,
  workspaceId: workspaceIdOf(context),
  personId: creatorIdOf(context.caller),
});

/** The servers, and how they are. */
type ServerServices = Pick<Dependencies, "upstreamServers" | "serverWatch">;

/** Returns the record of one server, with its tools. */
async function answered(
  context: AccountContext,
  { server, deps }: { server: UpstreamServer; deps: ServerServices },
) {
  const [read] = await deps.upstreamServers.withTools([server], readerOf(context));
  if (read === undefined) throw new Error("a server was read and is not there");
  const health = deps.serverWatch.healthOf(server, workspaceIdOf(context));
  return context.json(serverObject(read, health));
}

/** Lists the servers of the workspace, and the operator's, with their tools. */
export const listMcpServers = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/mcp-servers",
  access: reads,
  summary: "List upstream MCP servers.",
  response: () => z.object({ object: z.literal("list"), data: z.array(serverObjectSchema()) }),
  async handle(context, deps: ServerServices) {
    const servers = await deps.upstreamServers.visibleTo(workspaceIdOf(context));
    const read = await deps.upstreamServers.withTools(servers, readerOf(context));
    const workspaceId = workspaceIdOf(context);
    const data = read.map((each) =>
      serverObject(each, deps.serverWatch.healthOf(each.server, workspaceId)),
    );
    return context.json({ object: "list", data });
  },
});

export const getMcpServer = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/mcp-servers/:id",
  access: reads,
  summary: "Get an upstream MCP server.",
  response: serverObjectSchema,
  async handle(context, deps: ServerServices) {
    const server = await deps.upstreamServers.find(workspaceIdOf(context), context.param("id"));
    if (server === undefined)
      throw new GatewayError(
        "not_found",
        "There is no MCP server with this id. GET /mcp-servers lists them.",
      );
    return answered(context, { server, deps });
  },
});

/** Returns the id that a name makes. Throws `bad_request` where it makes none. */
function idFrom(name = ""): string {
  const id = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, 23)
    .replace(/-$/, "");
  if (serverIdPattern.test(id) && id !== allServers) return id;
  const message = "id: is required: 1 to 23 lower-case letters, digits and dashes, no dash first";
  throw new GatewayError("bad_request", message, { param: "id" });
}

/** Registers a server and reads its tools, whose definitions are pinned. */
export const createMcpServer = defineEndpoint({
  ...shared,
  method: "POST",
  idempotent: true,
  path: "/mcp-servers",
  access: writes,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Register an upstream MCP server.",
  description:
    "The server's tools are read and pinned by the hash of their definition; one that changes later is neither listed nor callable " +
    "until it is accepted (POST /mcp-servers/{id}/refresh). Headers are stored encrypted and never shown again.",
  body: newServerSchema,
  response: serverObjectSchema,
  async handle(context, deps: ServerServices & Pick<Dependencies, "clock">) {
    const { body } = context;
    const id = body.id ?? idFrom(body.name);
    const server: WorkspaceServer = {
      id,
      name: body.name ?? id,
      workspaceId: workspaceIdOf(context),
      target: { transport: "streamable_http", url: body.url },
      auth: authOf(body.auth),
      allowedTools: body.allowed_tools ?? null,
      priceNanoUsd: nanoFromUsd(body.price_per_call ?? 0) ?? 0n,
      timeoutMs: body.timeout_ms ?? defaultTimeoutMs,
      resultBytesMax: body.result_bytes_max ?? defaultResultBytes,
      createdAtMs: deps.clock.nowMs(),
      updatedAtMs: null,
    };
    await deps.upstreamServers.create(server);
    context.changed = server.id;
    return answered(context, { server, deps });
  },
});

/** Returns the credentials of a body. */
function authOf(auth: z.infer<typeof authField> = { type: "none" }): ServerAuth {
  if (auth.type === "none" || auth.type === "headers") return auth;
  const { type, client_id: clientId, client_secret: clientSecret, scope } = auth;
  return { type, clientId, clientSecret, scope };
}

/** Returns the credentials after a change. Throws where kept ones would be sent to another host. */
function changedAuth(
  { auth, target }: WorkspaceServer,
  { auth: wanted, url }: { auth?: z.infer<typeof authField> | undefined; url?: string | undefined },
): ServerAuth {
  if (wanted !== undefined) return authOf(wanted);
  const isMoved =
    url !== undefined &&
    target.transport === "streamable_http" &&
    new URL(url).origin !== new URL(target.url).origin;
  if (isMoved && auth.type !== "none")
    throw badField(
      "auth",
      "is required with a url at another host, since the stored headers are for the old one",
    );
  return auth;
}

/** Changes some fields of a server of the workspace. */
export const changeMcpServer = defineEndpoint({
  ...shared,
  method: "PATCH",
  path: "/mcp-servers/:id",
  access: writes,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change an upstream MCP server.",
  body: serverChangesSchema,
  response: serverObjectSchema,
  async handle(context, deps: ServerServices) {
    const { body } = context;
    const reference = { workspaceId: workspaceIdOf(context), id: context.param("id") };
    const server = await deps.upstreamServers.change(reference, (before) => ({
      ...before,
      auth: changedAuth(before, body),
      ...(body.url !== undefined && {
        target: { transport: "streamable_http", url: body.url } as const,
      }),
      ...(body.name !== undefined && { name: body.name }),
      ...(body.allowed_tools !== undefined && { allowedTools: body.allowed_tools }),
      ...(body.price_per_call !== undefined && {
        priceNanoUsd: nanoFromUsd(body.price_per_call) ?? 0n,
      }),
      ...(body.timeout_ms !== undefined && { timeoutMs: body.timeout_ms }),
      ...(body.result_bytes_max !== undefined && { resultBytesMax: body.result_bytes_max }),
    }));
    return answered(context, { server, deps });
  },
});

/** Deletes a server of the workspace, with its secrets and pins. */
export const deleteMcpServer = defineEndpoint({
  ...shared,
  method: "DELETE",
  path: "/mcp-servers/:id",
  access: writes,
  summary: "Delete an upstream MCP server.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { upstreamServers }: Pick<Dependencies, "upstreamServers">) {
    const server = await upstreamServers.ownedBy(workspaceIdOf(context), context.param("id"));
    await upstreamServers.remove(server);
    return context.json({ deleted: true, id: server.id });
  },
});

/** Reads a server's tools again, and accepts changed definitions where the body names them. */
export const refreshMcpServer = defineEndpoint({
  ...shared,
  method: "POST",
  path: "/mcp-servers/:id/refresh",
  access: writes,
  bodyBytesMax: accountBodyBytesMax,
  bodyOptional: true,
  idempotent: true,
  summary: "Read the tools of an MCP server again.",
  description:
    "Tools whose definition differs from the pinned one stay out of use until `accept` names them. Only operators accept changes of " +
    "the operator's servers.",
  body: refreshSchema,
  response: serverObjectSchema,
  async handle(context, deps: ServerServices & Pick<Dependencies, "operatorWorkspaceId">) {
    const { accept } = context.body;
    const server = await deps.upstreamServers.find(workspaceIdOf(context), context.param("id"));
    if (server === undefined)
      throw new GatewayError(
        "not_found",
        "There is no MCP server with this id. GET /mcp-servers lists them.",
      );
    if (accept !== undefined && server.workspaceId === null)
      requireOperator(context.caller, deps.operatorWorkspaceId);
    await deps.upstreamServers.refresh(server, {
      user: readerOf(context),
      accepts: (name) => accept === true || (accept?.includes(name) ?? false),
    });
    return answered(context, { server, deps });
  },
});

import { z } from "zod";
import { countActions } from "../../access/count-request.ts";
import { actorOf } from "../../access/audit/audit-log.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { parseJson, readJsonText } from "../../http/bodies/read-body.ts";
import type { Answer } from "../../http/reply.ts";
import { changeEvents } from "../../mcp/change-stream.ts";
import type { AgentRequest } from "../../mcp/gateway/agents/agent-request.ts";
import { streamOwnerOf } from "../../mcp/gateway/agents/agent-server.ts";
import { type ExposedTool, keyLimitsOf, type ToolLimits } from "../../mcp/gateway/exposed-tools.ts";
import { coversScope } from "../../identity/keys/scopes.ts";
import { userOf } from "../../mcp/gateway/tool-calls.ts";
import { allServers, type UpstreamServer } from "../../mcp/gateway/upstream-server.ts";
import type { ToolCaller } from "../../mcp/mcp-service.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { customerHeaderOf } from "../inference/request-names.ts";
import {
  addressTier,
  bodyBytesMax,
  callsIn,
  callTier,
  checkTransport,
  encodeMcpError,
  messageSchema,
  protocolAnswer,
  sdkRequest,
  upstreamMethods,
} from "./mcp-transport.ts";

/** The header that narrows a request to some servers or tools. */
const toolsHeader = brandHeader("MCP-Tools");

/** The same header as other gateways name it; it takes servers alone. */
const serversHeader = "x-mcp-servers";

/** Returns what the request's headers narrow its tools to; null where they name nothing. */
function requestedTools({ request }: Pick<RequestContext, "request">): readonly string[] | null {
  const value = request.headers.get(toolsHeader) ?? request.headers.get(serversHeader);
  return value === null
    ? null
    : value
        .split(",")
        .map((entry) => entry.trim())
        .filter((entry) => entry !== "");
}

/** Returns what limits the tools of a caller in this request. */
const limitsOf = (context: RequestContext<unknown, ToolCaller>): ToolLimits => ({
  keys: keyLimitsOf(context.caller),
  request: requestedTools(context),
});

/** Returns the servers that a path names. Throws `not_found`. */
async function serversAt(
  id: string,
  { caller, deps }: { caller: ToolCaller; deps: Pick<Dependencies, "upstreamServers"> },
): Promise<UpstreamServer[]> {
  const visible = await deps.upstreamServers.visibleTo(caller.workspace.id);
  if (id === allServers) return visible;
  const found = visible.filter((server) => server.id === id);
  if (found.length > 0) return found;
  throw new GatewayError(
    "not_found",
    `There is no MCP server ${JSON.stringify(id)}. GET /mcp-servers lists them.`,
  );
}

/** Throws for a management key or a connected app without the right to spend on calls. */
function assertInference(caller: ToolCaller): void {
  if (caller.kind === "llm-key") return;
  const { scopes } = caller.kind === "connection" ? caller.connection : caller.key;
  if (coversScope(scopes, "inference")) return;
  throw new GatewayError(
    "insufficient_scope",
    "Permission denied: tools of upstream servers need the scope inference.",
    { metadata: { required_scope: "inference" } },
  );
}

/** Writes the call of a tool that may change something to the audit log, before it is called. */
const auditer =
  (context: RequestContext, deps: Pick<Dependencies, "security">): AgentRequest["audit"] =>
  async (tool: ExposedTool) => {
    const actor = actorOf(context.caller);
    if (actor === undefined || context.caller.kind === "anonymous") return;
    await deps.security.auditLog.tell(
      {
        workspaceId: context.caller.workspace.id,
        actor,
        address: context.clientAddress(),
        action: "POST /mcp/:server",
        target: `${tool.server.id}/${tool.definition.name}`,
        fields: [],
      },
      { status: 200, target: null },
    );
  };

async function handle(
  context: RequestContext<unknown, ToolCaller>,
  deps: Pick<
    Dependencies,
    "security" | "upstreamServers" | "agentServer" | "counters" | "publicUrl"
  >,
): Promise<Answer> {
  checkTransport(context, deps.publicUrl());
  const { caller } = context;
  const parsedBody = parseJson(await readJsonText(context.request, bodyBytesMax));
  assertInference(caller);
  const id = context.param("server");
  const servers = await serversAt(id, { caller, deps });
  await countActions(deps.counters, {
    keyId: caller.key.id,
    tier: callTier,
    actions: callsIn(parsedBody, upstreamMethods),
    headers: context.answerHeaders,
  });
  const response = await deps.agentServer.answer(sdkRequest(context), {
    parsedBody,
    clientId: caller.key.id,
    served: {
      caller,
      servers: await deps.upstreamServers.withTools(servers, userOf(caller)),
      joined: id === allServers,
      limits: limitsOf(context),
      userAgent: context.request.headers.get("user-agent") ?? undefined,
      customer: customerHeaderOf(context.request.headers),
      audit: auditer(context, deps),
    },
  });
  return protocolAnswer(context, response);
}

const narrowing = z.object({
  [toolsHeader]: z
    .string()
    .optional()
    .describe(
      "Servers and tools (`server` or `server/tool`, separated by commas) that the request is narrowed to; empty means none.",
    ),
  [serversHeader]: z.string().optional().describe("Servers that the request is narrowed to."),
});

const shared = {
  path: "/mcp/:server",
  base: "api",
  alsoAtRoot: true,
  access: { llmKey: true, anyScope: true },
  counting: { perAddress: addressTier },
  protectedResource: true,
  tag: "Inference",
  headers: narrowing,
  otherResponseTypes: ["text/event-stream"],
  streamEvents: () => z.looseObject({ jsonrpc: z.literal("2.0") }),
  encodeError: encodeMcpError,
} as const;

/** Serves upstream MCP servers to agents: one of them, or all. */
export const mcpGateway = defineEndpoint({
  ...shared,
  method: "POST",
  bodyBytesMax,
  summary: "Use upstream MCP servers.",
  description:
    "JSON-RPC 2.0 of the Model Context Protocol, revisions up to 2025-11-25 and 2026-07-28, without sessions; also at " +
    "/mcp/{server} below the root. The server all joins every server of the caller, with tools named server__tool. The gateway " +
    "authenticates to the servers itself and never passes the caller's credential on. Each call of a tool costs its server's " +
    "price_per_call. Prompts and resources are those of servers that the caller may use as a whole; joined, their URIs begin with " +
    "mcp+server+.",
  rawBody: messageSchema,
  response: () => z.looseObject({ jsonrpc: z.literal("2.0") }),
  handle,
});

/** Clients of this revision and later ones listen with a request of the protocol. */
const newerRevision = "2026-07-28";

/** Throws for a request that asks for no stream of events, or for one that its revision has not. */
function assertListens({ request: { headers, method } }: RequestContext): void {
  const isNewer = (headers.get("mcp-protocol-version") ?? "") >= newerRevision;
  // HEAD is answered as GET is, and its stream would have no reader.
  const isGet = method === "GET";
  if (isGet && !isNewer && headers.get("accept")?.includes("text/event-stream")) return;
  throw new GatewayError(
    "method_not_allowed",
    isNewer
      ? "Send subscriptions/listen with POST to hear of changes."
      : "GET opens a stream of events alone (Accept: text/event-stream). Send messages with POST.",
  );
}

/** Opens the stream on which an agent of the older generation hears that lists have changed. */
export const mcpChanges = defineEndpoint({
  ...shared,
  method: "GET",
  summary: "Hear that lists of upstream MCP servers changed.",
  description:
    "The stream of the Model Context Protocol up to 2025-11-25, which clients open by themselves: notifications that tools, prompts or " +
    "resources changed, of servers that the credential may use. Later revisions send subscriptions/listen with POST. A credential has " +
    "at most 32 streams at once.",
  async handle(
    context: RequestContext<unknown, ToolCaller>,
    deps: Pick<Dependencies, "upstreamServers" | "agentStreams" | "publicUrl">,
  ) {
    checkTransport(context, deps.publicUrl());
    assertListens(context);
    const { caller } = context;
    assertInference(caller);
    const id = context.param("server");
    const servers = await serversAt(id, { caller, deps });
    const stream = deps.agentStreams.add(
      streamOwnerOf({
        caller,
        servers: servers.map((server) => ({ server })),
        joined: id === allServers,
        limits: limitsOf(context),
      }),
    );
    if (stream !== undefined)
      return protocolAnswer(context, changeEvents(stream, context.request.signal));
    if (deps.agentStreams.ending)
      throw new GatewayError("service_unavailable", "The gateway is about to end.", {
        retryAfterSeconds: 1,
      });
    throw new GatewayError(
      "rate_limit_exceeded",
      "This credential, or this gateway, has as many open streams as it may. Close one first.",
      { retryAfterSeconds: 30 },
    );
  },
});

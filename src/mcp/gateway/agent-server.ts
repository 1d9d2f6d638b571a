import type { ServerContext, Server } from "@modelcontextprotocol/server";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { brand } from "../../platform/kernel/brand.ts";
import type { ToolCaller } from "../mcp-service.ts";
import { type BuildServer, ProtocolServer } from "../protocol-server.ts";
import {
  exposedTools,
  type ExposedTool,
  type ReadServer,
  type ToolLimits,
} from "./exposed-tools.ts";
import type { ToolCalls, ToolOutcome } from "./tool-calls.ts";

/** A request of an agent to one upstream server, or to all of them. */
export interface AgentRequest {
  caller: ToolCaller;
  /** The servers with their tools. */
  servers: readonly ReadServer[];
  /** Whether several servers are joined, so that tools' names begin with their server's id. */
  joined: boolean;
  limits: ToolLimits;
  userAgent?: string | undefined;
  /** Records the call of a tool that may change something, before it is called. */
  audit(tool: ExposedTool): Promise<void>;
}

/** The key of `_meta` under which a list says which servers it is made of, and their state. */
const serversMetaKey = `${brand.routerOwner}/servers`;

const failed = (text: string) => ({
  content: [{ type: "text" as const, text }],
  isError: true,
});

/** Returns the server that shows the tools of upstream servers to agents. */
export const agentServer = (calls: ToolCalls, version: string): ProtocolServer<AgentRequest> =>
  new ProtocolServer<AgentRequest>({
    streams: true,
    load: async () => buildFor(calls, version),
  });

const buildFor =
  (calls: ToolCalls, version: string): BuildServer<AgentRequest> =>
  (sdk, request) => {
    const { servers, joined, limits } = request;
    const tools = exposedTools(servers, { limits, prefixed: joined });
    const [only] = servers;
    const server: Server = new sdk.Server(
      {
        name: joined || only === undefined ? brand.productName.toLowerCase() : only.server.id,
        title: joined || only === undefined ? brand.productName : only.server.name,
        version,
      },
      { capabilities: { tools: {} } },
    );
    server.setRequestHandler("tools/list", () => ({
      tools: [...tools.values()].map(({ name, definition }) => ({ ...definition, name }) as never),
      _meta: { [serversMetaKey]: servers.map(stateOf) },
    }));
    server.setRequestHandler("tools/call", async ({ params }, context) => {
      const tool = tools.get(params.name);
      if (tool === undefined)
        throw new sdk.ProtocolError(
          sdk.ProtocolErrorCode.InvalidParams,
          `There is no tool ${params.name} here that this credential may call. tools/list lists them.`,
        );
      return await answerOf(sdk, await outcomeOf(calls, { request, tool, params, context }));
    });
    return server;
  };

const stateOf = ({ server, error, needsConnection }: ReadServer) => ({
  id: server.id,
  status: needsConnection ? "not_connected" : error === null ? "ready" : "unreachable",
  ...(error !== null && { error }),
});

async function outcomeOf(
  calls: ToolCalls,
  {
    request,
    tool,
    params,
    context,
  }: {
    request: AgentRequest;
    tool: ExposedTool;
    params: { arguments?: Record<string, unknown> | undefined };
    context: ServerContext;
  },
): Promise<ToolOutcome | GatewayError> {
  const { signal, notify, _meta: meta } = context.mcpReq;
  const progressToken = meta?.progressToken;
  try {
    if (tool.definition.annotations?.readOnlyHint !== true) await request.audit(tool);
    return await calls.call({
      caller: request.caller,
      server: tool.server,
      definition: tool.definition,
      given: params.arguments ?? {},
      signal,
      userAgent: request.userAgent,
      ...(progressToken !== undefined && {
        onProgress: (progress) =>
          void notify({
            method: "notifications/progress",
            params: { ...progress, progressToken },
          }).catch(() => undefined),
      }),
    });
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

/** Returns a result with the id of its record, and what was charged in USD. */
function withCharge({ result, generationId, chargedNano }: Extract<ToolOutcome, { ok: true }>) {
  const { _meta: meta } = result;
  const told = {
    [`${brand.routerOwner}/generation_id`]: generationId,
    [`${brand.routerOwner}/cost`]: usdFromNano(chargedNano),
  };
  return { ...result, _meta: { ...meta, ...told } };
}

function answerOf(
  sdk: Parameters<BuildServer<AgentRequest>>[0],
  outcome: ToolOutcome | GatewayError,
) {
  if (outcome instanceof GatewayError) return failed(outcome.message);
  if (outcome.ok) return withCharge(outcome) as never;
  const { type, code, message } = outcome.failure;
  if (type === "protocol_error") throw new sdk.ProtocolError(code, message);
  return failed(`The server did not answer: ${message}`);
}

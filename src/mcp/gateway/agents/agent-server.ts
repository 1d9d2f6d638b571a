import type { CallToolResult, ServerContext, Server } from "@modelcontextprotocol/server";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { usdFromNano } from "../../../platform/kernel/money.ts";
import { brand } from "../../../platform/kernel/brand.ts";
import type { McpSdk } from "../../tool.ts";
import { type BuildServer, ProtocolServer } from "../../protocol-server.ts";
import { exposedTools, type ExposedTool, type ReadServer } from "../exposed-tools.ts";
import type { UpstreamContents } from "../upstream-contents.ts";
import type { UpstreamServer } from "../upstream-server.ts";
import { failureText } from "../upstream-servers.ts";
import { serveContents } from "./agent-contents.ts";
import type { AgentStreams, StreamOwner } from "./agent-streams.ts";
import type { AnswerElsewhere, CallsElsewhere, GoOn } from "./calls-elsewhere.ts";
import { joinedContent } from "./exposed-contents.ts";
import { type AgentRequest, serversMetaKey, stateOf } from "./agent-request.ts";
import type { HeldCalls } from "./held-calls.ts";
import { HeldCall, type Rendered, type NextOfCall } from "./held-call.ts";
import type { AskedCapabilities, Listener } from "../server-connections.ts";
import { logLevelKey, type ToolCalls, type ToolOutcome } from "../tool-calls.ts";

/** What came of a call: its outcome, or why it was not made; or what was asked of a server beside tools. */
export type Settled = ToolOutcome | GatewayError | { content: Rendered };

const failed = (text: string) => ({
  content: [{ type: "text" as const, text }],
  isError: true,
});

/** What the server for agents is made of. */
interface AgentServerParts {
  version: string;
  held: HeldCalls<Settled>;
  /** Calls in the memory of other gateways; absent where there are none. */
  elsewhere: CallsElsewhere | undefined;
  contents: UpstreamContents;
  streams: Pick<AgentStreams, "add">;
}

/** Returns who a request's stream of changes belongs to. */
export const streamOwnerOf = ({
  caller,
  servers: [only],
  joined,
  limits,
}: Pick<AgentRequest, "caller" | "joined" | "limits"> & {
  servers: readonly Pick<ReadServer, "server">[];
}): StreamOwner => ({ caller, limits, serverId: joined ? null : (only?.server.id ?? "") });

/** Returns the server that shows the tools, prompts and resources of upstream servers to agents. */
export const agentServer = (
  calls: ToolCalls,
  { streams, ...parts }: AgentServerParts,
): ProtocolServer<AgentRequest> =>
  new ProtocolServer<AgentRequest>({
    streams: true,
    load: async () => buildFor(calls, parts),
    subscribe: (request) => streams.add(streamOwnerOf(request)),
  });

const buildFor =
  (
    calls: ToolCalls,
    { version, held, contents, elsewhere }: Omit<AgentServerParts, "streams">,
  ): BuildServer<AgentRequest> =>
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
      {
        capabilities: {
          tools: { listChanged: true },
          prompts: { listChanged: true },
          resources: { listChanged: true },
          completions: {},
          logging: {},
        },
      },
    );
    serveContents(server, {
      sdk,
      request,
      contents,
      ask: (context, { name, work }) =>
        askAndGoOn(sdk, {
          held,
          elsewhere,
          request,
          context,
          name,
          render: (outcome) => ("content" in outcome ? outcome.content : {}),
          begin: async (call) => ({
            content: await work({
              signal: call.controller.signal,
              listener: listenerOf(call, { request, context }),
            }),
          }),
        }) as Promise<never>,
    });
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
      return callTool(sdk, { calls, held, elsewhere, request, tool, params, context });
    });
    return server;
  };

/** A request to call a tool, and what it is called with. */
interface ToolRequest {
  calls: ToolCalls;
  held: HeldCalls<Settled>;
  elsewhere: CallsElsewhere | undefined;
  request: AgentRequest;
  tool: ExposedTool;
  params: { arguments?: Record<string, unknown> | undefined };
  context: ServerContext;
}

/** Calls a tool, or goes on with the call whose questions the request answers. */
async function callTool(sdk: McpSdk, toolRequest: ToolRequest) {
  const { calls, request, tool, params, context } = toolRequest;
  return askAndGoOn(sdk, {
    ...toolRequest,
    name: tool.name,
    render: (outcome) =>
      answerOf(sdk, { outcome, joined: request.joined ? tool.server : undefined }),
    begin: (call) => outcomeOf(calls, { request, tool, params, context, call }),
  });
}

/** Asks a server something, or goes on with what was asked whose questions the request answers. */
async function askAndGoOn(
  sdk: McpSdk,
  {
    held,
    elsewhere,
    request: { caller },
    context,
    name,
    render,
    begin,
  }: Pick<ToolRequest, "held" | "elsewhere" | "request" | "context"> & {
    name: string;
    render(outcome: Settled): Rendered;
    begin(call: HeldCall<Settled>): Promise<Settled>;
  },
) {
  const owner = JSON.stringify([caller.workspace.id, caller.key.id, name]);
  const state = context.mcpReq.requestState();
  const responses = context.mcpReq.inputResponses ?? {};
  const call =
    typeof state === "string" ? held.take(state, owner) : new HeldCall<Settled>(owner, render);
  if (call === undefined) {
    const given = { state: String(state), owner, responses };
    return answeredElsewhere(sdk, await elsewhere?.ask(given, context.mcpReq.signal));
  }
  call.answer(responses);
  const next = await nextOf(call, { context, begin });
  if ("outcome" in next) return call.render(next.outcome) as never;
  held.keep(call);
  return askedOf(sdk, next);
}

const askedOf = (
  sdk: McpSdk,
  { questions, state }: Extract<NextOfCall<Settled>, { state: string }>,
) => sdk.inputRequired({ inputRequests: questions as never, requestState: state });

/** Returns what another gateway has answered to an agent's answers. */
function answeredElsewhere(sdk: McpSdk, answer: AnswerElsewhere | undefined) {
  if (answer === undefined)
    throw new sdk.ProtocolError(
      sdk.ProtocolErrorCode.InvalidParams,
      "requestState: belongs to no call of yours that waits. Call the tool again.",
    );
  if ("error" in answer) throw new sdk.ProtocolError(answer.error.code, answer.error.message);
  return "questions" in answer ? askedOf(sdk, answer) : (answer.result as never);
}

/** Returns how calls of this gateway go on for agents whose answers came to another one. */
export const goOnWith =
  (held: HeldCalls<Settled>): GoOn =>
  ({ state, owner, responses }) => {
    const call = held.take(state, owner);
    if (call === undefined) return undefined;
    call.heard = undefined;
    call.answer(responses);
    return { abandon: () => call.abandon(), answer: nextAnswer(held, call) };
  };

/** JSON-RPC's code of an error that is none of the protocol's. */
const internalError = -32603;

async function nextAnswer(
  held: HeldCalls<Settled>,
  call: HeldCall<Settled>,
): Promise<AnswerElsewhere> {
  try {
    const next = await call.next();
    if ("outcome" in next) return { result: call.render(next.outcome) };
    held.keep(call);
    return next;
  } catch (error) {
    const { code } = Object(error) as { code?: unknown };
    return {
      error: {
        code: typeof code === "number" ? code : internalError,
        message: typeof code === "number" ? failureText(error) : "The gateway failed on this call.",
      },
    };
  }
}

/** Begins a call that is new, and waits for its outcome or its next question. */
async function nextOf(
  call: HeldCall<Settled>,
  {
    context,
    begin,
  }: { context: ServerContext; begin: (call: HeldCall<Settled>) => Promise<Settled> },
): Promise<NextOfCall<Settled>> {
  const { signal, notify, _meta: meta } = context.mcpReq;
  const progressToken = meta?.progressToken;
  call.heard = {
    progress: (progress) => {
      if (progressToken === undefined) return;
      const params = { ...progress, progressToken };
      notify({ method: "notifications/progress", params }).catch(() => undefined);
    },
    log: ({ level, data, logger }) => {
      context.mcpReq.log(level, data, logger).catch(() => undefined);
    },
  };
  const leave = (): void => call.abandon();
  signal.addEventListener("abort", leave);
  try {
    call.begin(begin);
    return await call.next();
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/** What the client says of itself with each request (MCP 2026-07-28, "Request metadata"). */
const capabilitiesKey = "io.modelcontextprotocol/clientCapabilities";

/** Returns what a client can be asked, of the capabilities that it declared. */
function askedCapabilities(declared: unknown): AskedCapabilities {
  const { elicitation, sampling, roots } = Object(declared) as AskedCapabilities;
  return {
    ...(elicitation && { elicitation }),
    ...(sampling && { sampling }),
    ...(roots && { roots: {} }),
  };
}

/** Returns who hears what a server sends while it is asked: the agent that waits. */
function listenerOf(
  call: HeldCall<Settled>,
  { request, context }: { request: AgentRequest; context: ServerContext },
): Listener {
  const meta = Object(context.mcpReq.envelope) as Record<string, unknown>;
  return {
    capabilities: askedCapabilities(meta[capabilitiesKey] ?? request.capabilities),
    ask: (question) => call.ask(question),
    log: (message) => call.heard?.log(message),
  };
}

async function outcomeOf(
  calls: ToolCalls,
  {
    request,
    tool,
    params,
    context,
    call,
  }: {
    request: AgentRequest;
    tool: ExposedTool;
    params: { arguments?: Record<string, unknown> | undefined };
    context: ServerContext;
    call: HeldCall<Settled>;
  },
): Promise<Settled> {
  const meta = Object(context.mcpReq.envelope) as Record<string, unknown>;
  try {
    if (tool.definition.annotations?.readOnlyHint !== true) await request.audit(tool);
    return await calls.call({
      caller: request.caller,
      server: tool.server,
      definition: tool.definition,
      given: params.arguments ?? {},
      signal: call.controller.signal,
      userAgent: request.userAgent,
      customer: request.customer,
      onProgress: (progress) => call.heard?.progress(progress),
      listener: listenerOf(call, { request, context }),
      ...(typeof meta[logLevelKey] === "string" && { logLevel: meta[logLevelKey] }),
    });
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

/** Returns a result with the id of its record, and what was charged in USD. */
function withCharge({ result, generationId, chargedNano }: Extract<ToolOutcome, { ok: true }>) {
  const { _meta: meta } = result;
  const added = {
    [`${brand.routerOwner}/generation_id`]: generationId,
    [`${brand.routerOwner}/cost`]: usdFromNano(chargedNano),
  };
  return { ...result, _meta: { ...meta, ...added } };
}

/** Returns a result whose resources have the URIs under which joined servers show them. */
const withJoinedUris = (result: CallToolResult, server: UpstreamServer | undefined) =>
  server === undefined
    ? result
    : { ...result, content: result.content.map((each) => joinedContent(server, each)) };

function answerOf(
  sdk: McpSdk,
  { outcome, joined }: { outcome: Settled; joined: UpstreamServer | undefined },
): Rendered {
  if (outcome instanceof GatewayError) return failed(outcome.message);
  if ("content" in outcome) return outcome.content;
  if (outcome.ok) return withCharge({ ...outcome, result: withJoinedUris(outcome.result, joined) });
  const { type, code, message } = outcome.failure;
  if (type === "protocol_error") throw new sdk.ProtocolError(code, message);
  return failed(`The server did not answer: ${message}`);
}

import { z } from "zod";
import { lazily } from "../platform/kernel/keyed-mutex.ts";
import { ProtocolServer, type BuildServer } from "./protocol-server.ts";
import type { ToolEndpoint, Tool, ToolContext } from "./tool.ts";
import { isOperatorsKey, type Caller } from "../identity/keys/caller.ts";
import type { SessionCaller } from "../identity/people/sign-in/sessions.ts";
import { coversScope } from "../identity/keys/scopes.ts";
import { GatewayError } from "../platform/kernel/errors.ts";

/** A caller of tools: an LLM key, a management key or a connected app. */
export type ToolCaller = Extract<Caller, { kind: "llm-key" | "management-key" | "connection" }>;

/** A caller, and its relation to the service. */
export interface KnownCaller {
  caller: ToolCaller;
  /** The workspace whose management keys are operators' keys. */
  operatorWorkspaceId: string;
  /** The operator who gave the calling LLM key their rights; undefined for other credentials. */
  operator: SessionCaller | undefined;
}

/**
 * Returns whether a caller is an operator: by an LLM key with an operator's rights, or a management
 * key of the first workspace with the scope.
 */
const isOperator = ({ caller, operatorWorkspaceId, operator }: KnownCaller): boolean =>
  operator !== undefined ||
  (caller.kind === "management-key" && isOperatorsKey(caller.key, operatorWorkspaceId));

/** Returns whether a caller may use a tool; tools that it may not use are left out of its list. */
export function mayUse(
  { scope, operators }: Pick<Tool, "scope" | "operators">,
  known: KnownCaller,
): boolean {
  if (operators) return isOperator(known);
  if (scope === null) return true;
  const { caller } = known;
  // As everywhere in inference: LLM keys need no scope for it, and management keys cannot.
  if (scope === "inference" && caller.kind !== "connection") return caller.kind === "llm-key";
  if (caller.kind === "llm-key") return false;
  return coversScope(
    caller.kind === "connection" ? caller.connection.scopes : caller.key.scopes,
    scope,
  );
}

/** Builds the refusal of a caller that lacks the scope of a tool, saying how to get it. */
export function permissionDenied(
  { name, scope }: Pick<Tool, "name" | "scope">,
  { caller }: KnownCaller,
): GatewayError {
  const needed = `Permission denied: ${name} needs the scope ${scope}`;
  if (scope === "inference" && caller.kind === "management-key")
    return new GatewayError(
      "insufficient_scope",
      `${needed} of a connected app, or an LLM key; management keys are for administration.`,
    );
  if (caller.kind === "llm-key") {
    return new GatewayError(
      "insufficient_scope",
      `${needed}, and LLM keys hold none. Connect with OAuth or a management key that has it.`,
    );
  }
  const way =
    caller.kind === "connection"
      ? "Connect this app again and grant it."
      : "Use a management key that has it.";
  return new GatewayError("insufficient_scope", `${needed}. ${way}`);
}

const toolCallSchema = z.object({
  method: z.literal("tools/call"),
  params: z.object({ name: z.string() }),
});

/** A request to the MCP server, whose caller is known. */
export interface McpRequest {
  known: KnownCaller;
  /** The context of tool calls. */
  tools: ToolContext;
}

/** Builds the server that answers one request. */
export type BuildMcpServer = BuildServer<McpRequest>;

/** The tools, and the function that builds the server that offers them. */
interface ServedTools {
  tools: readonly Tool[];
  build: BuildMcpServer;
}

/**
 * MCP over HTTP. It is stateless, so that any gateway answers any request, in both generations of
 * the protocol.
 */
export class McpService {
  readonly endpoints: readonly ToolEndpoint[];
  private readonly tools: () => Promise<ServedTools>;
  /** The names of the tools that are not restricted to operators. */
  private readonly openTools: () => Promise<ReadonlySet<string>>;
  private readonly protocol: ProtocolServer<McpRequest>;

  /** `loadTools` is called by the first request. */
  constructor({
    endpoints,
    loadTools,
  }: {
    endpoints: readonly ToolEndpoint[];
    loadTools: () => Promise<ServedTools>;
  }) {
    this.endpoints = endpoints;
    this.tools = lazily(loadTools);
    this.openTools = lazily(async () => {
      const { tools } = await this.tools();
      return new Set(tools.filter(({ operators }) => !operators).map(({ name }) => name));
    });
    this.protocol = new ProtocolServer({ load: async () => (await this.tools()).build });
  }

  /** Returns whether the answer to a message depends on whether its caller is an operator. */
  async concernsOperators(message: unknown): Promise<boolean> {
    const call = toolCallSchema.safeParse(message);
    return !call.success || !(await this.openTools()).has(call.data.params.name);
  }

  /** Answers one HTTP request, whose body was read and parsed. */
  answer(
    request: Request,
    { parsedBody, known, tools }: McpRequest & { parsedBody: unknown },
  ): Promise<Response> {
    const clientId = known.caller.key.id;
    return this.protocol.answer(request, { parsedBody, clientId, served: { known, tools } });
  }

  /** Ends open streams. */
  close(): Promise<void> {
    return this.protocol.close();
  }
}

import { z } from "zod";
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
} from "./mcp-transport.ts";
import { countActions } from "../../access/count-request.ts";
import { idempotencyHeader } from "../../http/endpoint.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { parseJson, readJsonText } from "../../http/bodies/read-body.ts";
import type { Answer } from "../../http/reply.ts";
import type { KnownCaller, ToolCaller } from "../../mcp/mcp-service.ts";
import type { ToolContext } from "../../mcp/tool.ts";
import { assert } from "../../platform/kernel/assert.ts";
import type { Dependencies } from "../dependencies.ts";

/** What the endpoint of MCP needs. */
type McpDependencies = Pick<
  Dependencies,
  "operatorWorkspaceId" | "mcp" | "people" | "counters" | "clock" | "publicUrl"
>;

/**
 * Returns the operator who gave the calling LLM key an operator's rights, as a session of this
 * person that is not fresh. The rights end with those of the person.
 */
export async function operatorOf(
  caller: ToolCaller,
  { people }: Pick<Dependencies, "people">,
): Promise<KnownCaller["operator"]> {
  if (caller.kind !== "llm-key") return undefined;
  const { key, parent, workspace } = caller;
  const { operatorUserId } = key;
  // The endpoints refuse such keys; a row that was written otherwise grants nothing.
  const isOwn = parent === undefined && workspace.ownerUserId === operatorUserId;
  if (operatorUserId === undefined || !isOwn) return undefined;
  const user = await people.users.find(operatorUserId);
  if (user === undefined || !user.operator || user.blockedAtMs !== null) return undefined;
  return {
    kind: "session",
    session: {
      id: key.id,
      startedAtMs: Number.MIN_SAFE_INTEGER,
      expiresAtMs: key.expiresAtMs ?? Number.MAX_SAFE_INTEGER,
    },
    user: { id: user.id, name: user.name, email: user.email, emailVerified: true, operator: true },
    workspace,
    role: "member",
    scopes: [],
  };
}

async function handle(context: RequestContext<unknown>, deps: McpDependencies): Promise<Answer> {
  checkTransport(context, deps.publicUrl());
  const { caller } = context;
  assert(caller.kind !== "anonymous" && caller.kind !== "session", "the door lets in keys alone");
  const parsedBody = parseJson(await readJsonText(context.request, bodyBytesMax));
  await countActions(deps.counters, {
    keyId: caller.key.id,
    tier: callTier,
    actions: callsIn(parsedBody),
    headers: context.answerHeaders,
  });
  const operator = (await deps.mcp.concernsOperators(parsedBody))
    ? await operatorOf(caller, deps)
    : undefined;
  const idempotencyKey = context.request.headers.get(idempotencyHeader) ?? undefined;
  const request: ToolContext["request"] = (call) =>
    context.ask({ ...call, idempotencyKey: call.idempotencyKey ?? idempotencyKey, operator });
  const response = await deps.mcp.answer(sdkRequest(context), {
    parsedBody,
    known: { caller, operatorWorkspaceId: deps.operatorWorkspaceId, operator },
    tools: {
      request,
      ask: async (call) => (await request(call)).body,
      nowMs: () => deps.clock.nowMs(),
      endpoints: deps.mcp.endpoints,
    },
  });
  return protocolAnswer(context, response);
}

/** The MCP server (Model Context Protocol, streamable HTTP, stateless). */
export const mcp = defineEndpoint<McpDependencies>({
  method: "POST",
  path: "/mcp",
  base: "api",
  alsoAtRoot: true,
  access: { llmKey: true, anyScope: true },
  counting: { perAddress: addressTier },
  protectedResource: true,
  bodyBytesMax,
  summary: "Call tools over MCP.",
  description:
    "JSON-RPC 2.0 of the Model Context Protocol, revisions up to 2025-11-25 and 2026-07-28, without sessions; also at /mcp below " +
    "the root. LLM keys can call tools that require no scope, and those of inference; management keys and connected apps can call " +
    "tools whose scope they hold, and management keys none of inference. Operators' tools accept LLM keys with operator: true, and " +
    "management keys of the first workspace with write:management-keys. Limited to 120 tool calls per minute and credential and 300 " +
    "requests per minute and address, separate from other limits.",
  tag: "MCP",
  rawBody: messageSchema,
  response: () => z.looseObject({ jsonrpc: z.literal("2.0") }),
  encodeError: encodeMcpError,
  handle,
});

import { z } from "zod";
import { countActions } from "../../access/count-request.ts";
import { idempotencyHeader } from "../../http/endpoint.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { parseJson, readJsonText } from "../../http/read-body.ts";
import { Reply, type Answer } from "../../http/request-context.ts";
import type { KnownCaller, ToolCaller } from "../../mcp/mcp-service.ts";
import type { ToolContext } from "../../mcp/tool.ts";
import { assert } from "../../platform/kernel/assert.ts";
import type { Dependencies } from "../dependencies.ts";
import type { ErrorEncoder } from "../../http/error-envelope.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";

const loopbackAddress = /^(?:127\.|::1$|::ffff:127\.)/;
const loopbackNames: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

const hostnameOf = (url: string): string | undefined =>
  URL.canParse(url) ? new URL(url).hostname : undefined;

/**
 * Returns whether pages of an origin may call: those of this service, and those served by the
 * client's own machine.
 */
const mayCome = (origin: string, publicUrl: string): boolean =>
  (URL.canParse(publicUrl) && origin === new URL(publicUrl).origin) ||
  loopbackNames.has(hostnameOf(origin) ?? "");

/**
 * Refuses requests that another site makes a browser send to a server on loopback or in a private
 * network (DNS rebinding), as MCP's transports require, and requests that came unencrypted over a
 * network. Throws `forbidden`.
 */
function checkTransport(context: RequestContext, publicUrl: string): void {
  const { headers } = context.request;
  const origin = headers.get("origin");
  if (origin !== null && !mayCome(origin, publicUrl)) {
    throw new GatewayError("forbidden", "Pages of this origin may not use the MCP server.");
  }
  const isLocal = loopbackAddress.test(context.clientAddress());
  if (!isLocal && !context.isEncrypted()) {
    const message =
      "The MCP server takes HTTPS only. Call it with https://; behind a proxy that ends TLS, let the gateway trust it " +
      "(server.trust_proxy) and have it send X-Forwarded-Proto.";
    throw new GatewayError("forbidden", message);
  }
  const host = hostnameOf(`http://${headers.get("host") ?? ""}`);
  if (isLocal && host !== undefined && !loopbackNames.has(host) && host !== hostnameOf(publicUrl)) {
    throw new GatewayError(
      "forbidden",
      `This server is not called ${host}. Set server.public_url where people reach it by another name.`,
    );
  }
}

/**
 * Returns the JSON-RPC code of a refusal at the door, by HTTP status (contract: "MCP errors";
 * JSON-RPC 2.0, section 5.1).
 */
function codeOf({ status, code }: GatewayError): number {
  if (code === "invalid_request_body") return -32700;
  if (status === 401) return -32001;
  if (status === 429 || status === 403) return -32000;
  return status >= 500 ? -32603 : -32600;
}

/** Renders a refusal of the whole request. It has no id, since the request was not parsed. */
const encodeMcpError: ErrorEncoder = (error) => ({
  jsonrpc: "2.0",
  error: {
    code: codeOf(error),
    message:
      error.status === 401
        ? "Unauthorized"
        : error.status === 429
          ? `${error.message} Retry after ${error.retryAfterSeconds ?? 60} seconds.`
          : error.message,
  },
  id: null,
});

const bodyBytesMax = 4 * 1024 * 1024;

/** Contract, "Limits": requests by address before authentication, and tool calls by credential. */
const addressTier = { id: "mcp-ip", perMinute: 300 } as const;
const callTier = { id: "mcp", perMinute: 120 } as const;

const messageSchema = z.looseObject({
  jsonrpc: z.literal("2.0"),
  method: z.string().optional(),
  params: z.looseObject({}).optional(),
  id: z.union([z.string(), z.number()]).optional(),
});

const isCall = (message: unknown): boolean =>
  typeof message === "object" &&
  message !== null &&
  "method" in message &&
  message.method === "tools/call";

/**
 * Returns how many tools a request calls. Batches of the older protocol revisions may call several.
 */
const callsIn = (body: unknown): number =>
  (Array.isArray(body) ? body : [body]).filter(isCall).length;

/**
 * Returns the request for the SDK, with the protocol's headers. The client's `Accept` is not
 * checked, since calls are answered as JSON.
 */
function sdkRequest({ request }: RequestContext): Request {
  const headers = request
    .headerEntries()
    .filter(([name]) => name.startsWith("mcp-") || name === "last-event-id");
  headers.push(
    ["accept", "application/json, text/event-stream"],
    ["content-type", request.headers.get("content-type") ?? "application/json"],
  );
  return new Request("http://localhost/mcp", { method: "POST", headers, signal: request.signal });
}

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

async function handle(context: RequestContext<unknown>, deps: Dependencies): Promise<Answer> {
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
  const headers = { ...Object.fromEntries(response.headers), ...context.headers };
  const { status } = response;
  if (response.headers.get("content-type")?.startsWith("text/event-stream"))
    return new Response(response.body, { status, headers });
  return new Reply(await response.text(), { status, headers });
}

/** The MCP server (Model Context Protocol, streamable HTTP, stateless). */
export const mcp = defineEndpoint<Dependencies>({
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
    "the root. LLM keys can call tools that require no scope; management keys and connected apps can call tools whose scope they " +
    "hold. Operators' tools accept LLM keys with operator: true, and management keys of the first workspace with " +
    "write:management-keys. Limited to 120 tool calls per minute and credential and 300 requests per minute and address, separate " +
    "from other limits.",
  tag: "MCP",
  rawBody: messageSchema,
  response: () => z.looseObject({ jsonrpc: z.literal("2.0") }),
  encodeError: encodeMcpError,
  handle,
});

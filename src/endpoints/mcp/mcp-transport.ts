import { z } from "zod";
import type { RequestContext } from "../../access/define-endpoint.ts";
import type { ErrorEncoder } from "../../http/error-envelope.ts";
import { bytesAnswer, Reply, type Answer } from "../../http/reply.ts";
import { countText } from "../../platform/kernel/count-text.ts";
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
export function checkTransport(context: RequestContext, publicUrl: string): void {
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
export const encodeMcpError: ErrorEncoder = (error) => ({
  jsonrpc: "2.0",
  error: {
    code: codeOf(error),
    message:
      error.status === 401
        ? "Unauthorized"
        : error.status === 429
          ? `${error.message} Retry after ${countText(error.retryAfterSeconds ?? 60, "second")}.`
          : error.message,
  },
  id: null,
});

/** The most bytes of a request. */
export const bodyBytesMax = 4 * 1024 * 1024;

/** Contract, "Limits": requests by address before authentication, and tool calls by credential. */
export const addressTier = { id: "mcp-ip", perMinute: 300 } as const;
/** The tier of tool calls. */
export const callTier = { id: "mcp", perMinute: 120 } as const;

/** A message of the protocol, described for documents. */
export const messageSchema = z.looseObject({
  jsonrpc: z.literal("2.0"),
  method: z.string().optional(),
  params: z.looseObject({}).optional(),
  id: z.union([z.string(), z.number()]).optional(),
});

/** The methods that call a tool. */
const toolMethods: ReadonlySet<unknown> = new Set(["tools/call"]);

/** Those that make another server do something. */
export const upstreamMethods: ReadonlySet<unknown> = new Set([
  ...toolMethods,
  "prompts/get",
  "resources/read",
]);

/**
 * Returns how many calls a body holds. Batches of the older protocol revisions may hold several.
 */
export const callsIn = (body: unknown, methods = toolMethods): number =>
  (Array.isArray(body) ? body : [body]).filter((message: unknown) =>
    methods.has((Object(message) as { method?: unknown }).method),
  ).length;

/**
 * Returns the request for the SDK, with the protocol's headers. The client's `Accept` is not
 * checked, since calls are answered as JSON.
 */
export function sdkRequest({ request }: RequestContext): Request {
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
 * Returns the answer to a request of the protocol, whole or as events, with the gateway's headers. A
 * tool may be silent for as long as its server allows.
 */
export async function protocolAnswer(
  { headers: own, request }: RequestContext,
  response: Response,
): Promise<Answer> {
  const headers = { ...Object.fromEntries(response.headers), ...own };
  const { status, body } = response;
  if (response.headers.get("content-type")?.startsWith("text/event-stream"))
    return body === null || request.method === "GET"
      ? new Response(body, { status, headers })
      : bytesAnswer(body, { status, headers });
  return new Reply(await response.text(), { status, headers });
}

import { GatewayError } from "../platform/kernel/errors.ts";
import type { RequestContext } from "../access/define-endpoint.ts";

const loopbackAddress = /^(?:127\.|::1$|::ffff:127\.)/;
const loopbackNames: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

const hostnameOf = (url: string): string | undefined =>
  URL.canParse(url) ? new URL(url).hostname : undefined;

/** Pages that may call: those of this service, and those that the client's own machine serves. */
const mayCome = (origin: string, publicUrl: string): boolean =>
  (URL.canParse(publicUrl) && origin === new URL(publicUrl).origin) ||
  loopbackNames.has(hostnameOf(origin) ?? "");

/**
 * Refuses what a foreign page makes a browser send to a server on loopback or in a private network
 * (DNS rebinding), as MCP's transports demand, and requests that came unencrypted over a network.
 * Throws `forbidden`.
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

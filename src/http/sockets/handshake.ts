import { GatewayError } from "../../platform/kernel/errors.ts";
import type { HttpRequest } from "../served-request.ts";

/**
 * Returns whether a client asks to switch to a WebSocket. Codex (0.169) continues over HTTP at once
 * when it gets a 426, and after six seconds of retries when it gets a 404 or 405.
 */
export const asksForWebSocket = ({ headers }: Pick<HttpRequest, "headers">): boolean =>
  headers.get("upgrade")?.toLowerCase() === "websocket";

const noWebSockets =
  "This endpoint does not speak over WebSockets. Send the request as HTTP, with stream: true for events.";

const onlyWebSockets =
  "This endpoint speaks over WebSockets alone. Open it with the scheme wss, or ws without TLS.";

/**
 * Returns the refusal of a request in the wrong protocol, with the header that names the right one
 * (RFC 9110, section 15.5.22): a handshake where there are no sockets, or a request over HTTP where
 * `allow` names no method. Undefined for every other request.
 */
export function wrongProtocolOf(
  request: Pick<HttpRequest, "headers">,
  allow: string,
): { error: GatewayError; upgrade: string } | undefined {
  const asks = asksForWebSocket(request);
  if (!asks && allow !== "") return undefined;
  const message = asks ? noWebSockets : onlyWebSockets;
  return {
    error: new GatewayError("upgrade_required", message),
    upgrade: asks ? "HTTP/1.1" : "websocket",
  };
}

/** The version of the WebSocket protocol (RFC 6455). */
const spokenVersion = "13";

/**
 * Returns the refusal of a handshake of another version, with the headers that name the right one
 * (RFC 6455, section 4.4); undefined for the right one.
 */
export function refusedVersionOf({
  headers,
}: Pick<HttpRequest, "headers">):
  | { error: GatewayError; headers: Readonly<Record<string, string>> }
  | undefined {
  if (headers.get("sec-websocket-version") === spokenVersion) return undefined;
  const message = `The handshake is not of version ${spokenVersion} of the WebSocket protocol.`;
  return {
    error: new GatewayError("upgrade_required", message),
    headers: { upgrade: "websocket", "sec-websocket-version": spokenVersion },
  };
}

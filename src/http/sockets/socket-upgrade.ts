import { Reply } from "../reply.ts";
import type { SocketSession } from "./client-socket.ts";

/**
 * The answer that turns a request into a socket. Its headers are those of the handshake; a session
 * does the work from then on.
 */
export class SocketUpgrade extends Reply {
  constructor(
    readonly session: SocketSession,
    { headers, protocol }: { headers: Record<string, string>; protocol?: string | undefined },
  ) {
    super("", {
      status: 101,
      headers:
        protocol === undefined ? headers : { ...headers, "sec-websocket-protocol": protocol },
    });
  }
}

import type { SocketContinuation, SocketMode } from "../../dialects/socket-mode.ts";
import type { ExchangeTie } from "../../upstream/abort-scope.ts";
import type { ExchangeTimeouts } from "../../upstream/exchange.ts";
import type { UpstreamClient, UpstreamResponse } from "../../upstream/upstream-client.ts";
import type { SocketTarget } from "../../upstream/upstream-socket.ts";

/** A request for a provider's socket. */
export interface SocketRequest {
  target: SocketTarget;
  mode: SocketMode;
  /** The text of the same request over HTTP. */
  text: string;
  turn: Pick<SocketTurn, "shownId" | "continues">;
  timeouts: ExchangeTimeouts;
  abortScope: ExchangeTie;
  /** Ends the answer with the exchanges in flight. */
  upstream: Pick<UpstreamClient, "tie">;
}

/** The sockets to providers that belong to one socket of a client. */
interface SocketsOfClient {
  /** Returns the socket to an address; undefined where there may be no more. */
  to(
    address: Pick<SocketTarget, "url" | "headers">,
  ): { ask(request: SocketRequest): Promise<UpstreamResponse | undefined> } | undefined;
}

/** The place of a request among those of its client's socket. */
export interface SocketTurn {
  sockets: SocketsOfClient;
  /** The id of its answer as the client sees it. */
  shownId: string;
  /**
   * The response of the same socket that it continues, by the id that the client sees; undefined
   * where its conversation does not consist of that response and new items.
   */
  continues: (Omit<SocketContinuation, "responseId"> & { shownId: string }) | undefined;
}

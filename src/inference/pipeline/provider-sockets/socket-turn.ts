import type { SocketContinuation } from "../../dialects/socket-mode.ts";
import type { ProviderSockets } from "./provider-sockets.ts";

/** The place of a request among those of its client's socket. */
export interface SocketTurn {
  /** The sockets to providers that belong to the client's. */
  sockets: ProviderSockets;
  /** The id of its answer as the client sees it. */
  shownId: string;
  /**
   * The response of the same socket that it continues, by the id that the client sees; undefined
   * where its conversation does not consist of that response and new items.
   */
  continues: (Omit<SocketContinuation, "responseId"> & { shownId: string }) | undefined;
}

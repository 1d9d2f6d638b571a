import type { SocketTarget } from "../../upstream/upstream-socket.ts";
import { ProviderSocket } from "./provider-socket.ts";

/** The most sockets to providers that belong to one socket of a client. */
const socketsMax = 8;

/**
 * The sockets to providers that belong to one socket of a client: one for each address and
 * credential, so that a provider remembers the responses of that client alone.
 */
export class ProviderSockets {
  private readonly sockets = new Map<string, ProviderSocket>();
  private isRetired = false;

  /** Returns the socket to an address; undefined where there may be no more. */
  to({ url, headers }: Pick<SocketTarget, "url" | "headers">): ProviderSocket | undefined {
    if (this.isRetired) return undefined;
    // The headers contain the credential, which is not kept in the name.
    const name = new Bun.CryptoHasher("sha256")
      .update(JSON.stringify([url, headers]))
      .digest("hex");
    const known = this.sockets.get(name);
    if (known !== undefined || this.sockets.size >= socketsMax) return known;
    const socket = new ProviderSocket();
    this.sockets.set(name, socket);
    return socket;
  }

  /** Closes the sockets, each once its answer in flight has ended, since the client has left. */
  retire(): void {
    this.isRetired = true;
    for (const socket of this.sockets.values()) socket.retire();
    this.sockets.clear();
  }
}

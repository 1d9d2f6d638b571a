import type { ServerConnections } from "../server-connections.ts";
import { userOf } from "../tool-calls.ts";
import { storageKeyOf, type UpstreamServer } from "../upstream-server.ts";
import type { UpstreamServers } from "../upstream-servers.ts";
import { type AgentStreams, isSeen, type StreamOwner } from "./agent-streams.ts";

/** Milliseconds between two looks at the servers of open streams. */
const lookMs = 30_000;

/** The most servers that are listened to at once; the others are read from time to time. */
const listenedMax = 200;

/** Options of the watch. */
interface ListWatchOptions {
  streams: AgentStreams;
  servers: Pick<UpstreamServers, "visibleTo" | "withTools">;
  connections: Pick<ServerConnections, "listen">;
  onError(error: unknown): void;
}

/**
 * Watches the lists of servers that agents have open streams for: keeps a connection to each on which
 * it says that they have changed, and reads tools again whose list is old. Without streams nothing is
 * asked.
 */
export class ListWatch {
  private readonly looking: ReturnType<typeof setInterval>;

  constructor(private readonly options: ListWatchOptions) {
    const { streams, onError } = options;
    streams.onAdded = (owner) => this.lookFor([owner]).catch(onError);
    this.looking = setInterval(() => {
      streams.check();
      this.lookFor(streams.owners).catch(onError);
    }, lookMs);
    this.looking.unref();
  }

  /** Stops looking. */
  stop(): void {
    clearInterval(this.looking);
  }

  private async lookFor(owners: readonly StreamOwner[]): Promise<void> {
    const seen = new Set<string>();
    for (const owner of owners) {
      const servers = await this.visibleTo(owner);
      const unseen = servers.filter((server) => !seen.has(storageKeyOf(server)));
      for (const server of unseen) seen.add(storageKeyOf(server));
      if (unseen.length > 0) await this.watch(unseen, owner);
      if (seen.size >= listenedMax) return;
    }
  }

  private async visibleTo(owner: StreamOwner): Promise<UpstreamServer[]> {
    const visible = await this.options.servers.visibleTo(owner.caller.workspace.id);
    return visible.filter((server) => isSeen(owner, server));
  }

  private async watch(servers: readonly UpstreamServer[], owner: StreamOwner): Promise<void> {
    const user = userOf(owner.caller);
    const read = await this.options.servers.withTools(servers, user);
    // An agent that has left meanwhile needs no connection.
    if (!this.options.streams.isOpen(owner)) return;
    for (const { server, error, needsConnection } of read)
      if (error === null && !needsConnection) this.options.connections.listen(server, user);
  }
}

import type {
  Client,
  ClientCapabilities,
  LoggingMessageNotification,
  Transport,
} from "@modelcontextprotocol/client";
import { assert } from "../../platform/kernel/assert.ts";
import { brand } from "../../platform/kernel/brand.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { AddressGuard } from "../../platform/notify/public-address.ts";
import { type ListKind, listKinds } from "../change-stream.ts";
import type { Grants } from "./oauth/grants.ts";
import { serverFetch } from "./server-fetch.ts";
import {
  type ServerUser,
  storageKeyOf,
  type UpstreamServer,
  usesOauth,
} from "./upstream-server.ts";

/** The SDK of the protocol's client, which is loaded when the first server is called. */
type ClientSdk = typeof import("@modelcontextprotocol/client");

/** Milliseconds that a server may take to accept a connection and to name its version. */
const connectMs = 10_000;

/** Milliseconds after its last call at which a connection is closed. */
const idleMs = 60_000;

/** The most connections; beyond it the one that has been idle longest is closed. */
const connectionsMax = 500;

/** A question of a server to the client that calls it. */
export interface Question {
  method: "elicitation/create" | "sampling/createMessage" | "roots/list";
  params?: Readonly<Record<string, unknown>> | undefined;
}

/** What a client can be asked, in the words of the protocol. */
export type AskedCapabilities = Pick<ClientCapabilities, "elicitation" | "sampling" | "roots">;

/** Who hears what a server sends during a call. */
export interface Listener {
  /** What the client can answer; a server asks for nothing else. */
  capabilities: AskedCapabilities;
  ask(question: Question): Promise<unknown>;
  log(message: LoggingMessageNotification["params"]): void;
}

/** A server, and the caller whose session there it is. */
interface Place {
  server: UpstreamServer;
  user: ServerUser;
  capabilities: AskedCapabilities;
  /** Whether the connection is there to hear that lists have changed. */
  listens?: true;
}

interface Connection {
  client: Promise<Client>;
  usedAtMs: number;
  /** The calls in progress. */
  uses: number;
  /** Those who hear what the server sends. One that can be asked has the connection to itself. */
  listeners: Set<Listener>;
}

const questionMethods = {
  elicitation: "elicitation/create",
  sampling: "sampling/createMessage",
  roots: "roots/list",
} as const satisfies Record<keyof AskedCapabilities, Question["method"]>;

/**
 * Milliseconds for which the first call of a connection waits until the server has answered the
 * request for its stream. Servers that ask there could not reach the client before.
 */
const streamMs = 1_000;

/** Returns whether a server may ask its client on the stream of the connection, and not of the call. */
const asksOnStream = (client: Client): boolean =>
  client.getProtocolEra() === "legacy" &&
  client.transport !== undefined &&
  "sessionId" in client.transport;

const canBeAsked = (capabilities: AskedCapabilities = {}): boolean =>
  Object.keys(capabilities).length > 0;

/**
 * Connections to upstream servers. Each belongs to one owner, since a server may keep state in its
 * session, and another caller must not see it.
 */
export class ServerConnections {
  private readonly guard: AddressGuard;
  private readonly grants: Pick<Grants, "providerOf" | "note">;
  private readonly clock: Clock;
  private readonly version: string;
  /** Called where a server says that one of its lists has changed. */
  onListChanged: ((at: Pick<Place, "server" | "user">, kind: ListKind) => void) | undefined;
  private readonly open = new Map<string, Connection>();
  private readonly sweeping: ReturnType<typeof setInterval>;

  constructor(options: {
    guard: AddressGuard;
    grants: Pick<Grants, "providerOf" | "note">;
    clock: Clock;
    version: string;
  }) {
    this.grants = options.grants;
    this.guard = options.guard;
    this.clock = options.clock;
    this.version = options.version;
    this.sweeping = setInterval(() => this.closeIdle(), idleMs / 2);
    this.sweeping.unref();
  }

  /**
   * Runs work with a connected client. `user` is the caller whose session it is. Work is run
   * again on a new connection only where the server has forgotten the session, so that it cannot
   * have begun.
   */
  async use<Result>(
    server: UpstreamServer,
    user: ServerUser,
    work: (client: Client) => Promise<Result>,
    listener?: Listener,
  ): Promise<Result> {
    const capabilities = listener?.capabilities ?? {};
    const key = this.keyFor([storageKeyOf(server), server.updatedAtMs, user.session], capabilities);
    const isReused = this.open.has(key);
    const at = { server, user, capabilities };
    try {
      return await this.run(key, { at, listener }, work);
    } catch (error) {
      if (isConnectionLost(error)) this.drop(key);
      if (!isReused || !isSessionLost(error)) throw error;
      this.drop(key);
      return await this.run(key, { at, listener }, work);
    }
  }

  /**
   * Keeps a connection on which a server says that its lists have changed. It is closed when this
   * was not called again for a minute.
   */
  listen(server: UpstreamServer, user: ServerUser): void {
    // A process would be started for nothing else.
    if (server.target.transport !== "streamable_http") return;
    const key = JSON.stringify([storageKeyOf(server), server.updatedAtMs, user.personId, "lists"]);
    const connection =
      this.open.get(key) ?? this.connect(key, { server, user, capabilities: {}, listens: true });
    connection.usedAtMs = this.clock.monotonicMs();
  }

  /** Returns the key of a connection: of the shared one, or of a free one for a client that can be asked. */
  private keyFor(place: readonly unknown[], capabilities: AskedCapabilities): string {
    if (!canBeAsked(capabilities)) return JSON.stringify(place);
    for (let index = 0; ; index += 1) {
      const key = JSON.stringify([...place, capabilities, index]);
      if ((this.open.get(key)?.uses ?? 0) === 0) return key;
    }
  }

  /** Closes the connections to a server that was deleted. */
  forget(server: UpstreamServer): void {
    const beginning = `${JSON.stringify([storageKeyOf(server)]).slice(0, -1)},`;
    for (const key of this.open.keys()) if (key.startsWith(beginning)) this.drop(key);
  }

  /** Closes every connection. */
  async close(): Promise<void> {
    clearInterval(this.sweeping);
    const closing = [...this.open.values()].map(closeConnection);
    this.open.clear();
    await Promise.all(closing);
  }

  private async run<Result>(
    key: string,
    { at, listener }: { at: Place; listener: Listener | undefined },
    work: (client: Client) => Promise<Result>,
  ): Promise<Result> {
    const connection = this.open.get(key) ?? this.connect(key, at);
    connection.uses += 1;
    if (listener !== undefined) connection.listeners.add(listener);
    try {
      return await work(await connection.client);
    } finally {
      if (listener !== undefined) connection.listeners.delete(listener);
      connection.uses -= 1;
      connection.usedAtMs = this.clock.monotonicMs();
    }
  }

  private connect(key: string, at: Place): Connection {
    this.makeRoom();
    const listeners = new Set<Listener>();
    const client = this.connected(at, listeners);
    const connection = { client, usedAtMs: this.clock.monotonicMs(), uses: 0, listeners };
    this.open.set(key, connection);
    client.catch(() => this.drop(key, connection));
    return connection;
  }

  private async connected(at: Place, listeners: ReadonlySet<Listener>): Promise<Client> {
    const sdk = await import("@modelcontextprotocol/client");
    const { capabilities } = at;
    const client = new sdk.Client(
      { name: brand.productName.toLowerCase(), version: this.version },
      { capabilities, versionNegotiation: { mode: "auto", probe: { timeoutMs: connectMs } } },
    );
    for (const kind of Object.keys(capabilities) as (keyof AskedCapabilities)[])
      client.setRequestHandler(questionMethods[kind], async ({ method, params }) => {
        const [listener] = listeners;
        if (listener === undefined) throw new Error("There is no call that could be asked.");
        return (await listener.ask({ method, params: { ...params } })) as never;
      });
    for (const kind of listKinds)
      client.setNotificationHandler(`notifications/${kind}/list_changed`, () =>
        this.onListChanged?.(at, kind),
      );
    client.setNotificationHandler("notifications/message", ({ params }) => {
      for (const listener of listeners) listener.log(params);
    });
    const streamed = Promise.withResolvers<void>();
    const transport = await this.transportTo(at, { sdk, onStream: streamed.resolve });
    try {
      await client.connect(transport, { timeout: connectMs });
      if (at.listens) await this.listenWith(client);
    } catch (error) {
      await client.close().catch(ignored);
      throw error;
    }
    if (!at.listens && canBeAsked(capabilities) && asksOnStream(client))
      await Promise.race([streamed.promise, Bun.sleep(streamMs)]);
    return client;
  }

  /** Asks a server of the newer generation to say when its lists change; the older one just does. */
  private async listenWith(client: Client): Promise<void> {
    const { tools, prompts, resources } = client.getServerCapabilities() ?? {};
    const filter = {
      ...(tools?.listChanged && { toolsListChanged: true }),
      ...(prompts?.listChanged && { promptsListChanged: true }),
      ...(resources?.listChanged && { resourcesListChanged: true }),
    };
    if (client.getProtocolEra() === "modern" && Object.keys(filter).length > 0)
      await client.listen(filter, { timeout: connectMs });
  }

  /** `onStream` is called when the server has answered the request for a stream of its own. */
  private async transportTo(
    { server, user, capabilities, listens }: Place,
    { sdk, onStream }: { sdk: ClientSdk; onStream(): void },
  ) {
    const { target, auth, workspaceId } = server;
    assert(target.transport !== "search", "a search has no connection");
    if (target.transport === "stdio") {
      const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
      const { command, args, env } = target;
      return new StdioClientTransport({
        command,
        args: [...args],
        env: { ...env },
        stderr: "ignore",
      });
    }
    const headers = auth.type === "headers" ? auth.headers : {};
    const send = serverFetch({ guard: this.guard, guarded: workspaceId !== null, headers });
    const transport = new sdk.StreamableHTTPClientTransport(new URL(target.url), {
      // Streams that no request belongs to stay open for as long as the connection. Servers of the
      // older generation ask on them too, so clients that can be asked have one.
      fetch: async (url, init) => {
        // A stream that goes on after an event is that of a call, which its server has broken off.
        const isStream = init?.method === "GET" && !new Headers(init.headers).has("last-event-id");
        if (isStream && !listens && !canBeAsked(capabilities))
          return new Response(null, { status: 405 });
        const sent = send(url, init);
        if (isStream) sent.then(onStream, onStream);
        const response = await sent;
        this.grants.note(new Headers(init?.headers), response);
        return response;
      },
      ...(usesOauth(server) && { authProvider: this.grants.providerOf(server, user) }),
    });
    return transport as Transport;
  }

  private drop(key: string, only?: Connection): void {
    const connection = this.open.get(key);
    if (connection === undefined || (only !== undefined && connection !== only)) return;
    this.open.delete(key);
    void closeConnection(connection);
  }

  private closeIdle(): void {
    const beforeMs = this.clock.monotonicMs() - idleMs;
    for (const [key, { uses, usedAtMs }] of this.open)
      if (uses === 0 && usedAtMs < beforeMs) this.drop(key);
  }

  private makeRoom(): void {
    if (this.open.size < connectionsMax) return;
    const idle = [...this.open].filter(([, { uses }]) => uses === 0);
    const [oldest] = idle.sort(([, left], [, right]) => left.usedAtMs - right.usedAtMs);
    if (oldest !== undefined) this.drop(oldest[0]);
  }
}

/** Ends a session at its server where the server keeps one, and closes the connection. */
async function closeConnection({ client }: Connection): Promise<void> {
  // Where it was not made there is nothing to close.
  const connected = await client.catch(() => undefined);
  const transport = connected?.transport;
  if (transport !== undefined && "terminateSession" in transport)
    await Promise.race([
      (transport as { terminateSession(): Promise<void> }).terminateSession(),
      Bun.sleep(1_000),
    ]).catch(ignored);
  // Its streams stay open until then, also where the server keeps the session.
  await connected?.close().catch(ignored);
}

/** What a server does not end is closed here all the same. */
const ignored = (): void => undefined;

const codeOf = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "code" in error ? error.code : undefined;

const statusOf = (error: unknown): unknown => {
  if (typeof error !== "object" || error === null) return undefined;
  if ("status" in error) return error.status;
  const data = "data" in error ? error.data : undefined;
  return typeof data === "object" && data !== null && "status" in data ? data.status : undefined;
};

/** Returns whether a server has forgotten the session (MCP, "Session Management": 404). */
const isSessionLost = (error: unknown): boolean => statusOf(error) === 404;

/** Returns whether a connection is of no more use: anything but an answer in the protocol. */
const isConnectionLost = (error: unknown): boolean => typeof codeOf(error) !== "number";

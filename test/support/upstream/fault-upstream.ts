import type { Socket } from "bun";
import { freePort } from "../../end-to-end/process/support/ports.ts";
import { Gate } from "./gate.ts";
import { healthyChat } from "./healthy-chat.ts";
import type { RecordedRequest } from "./recorded-request.ts";
import { json, type Script } from "./steps.ts";
import { type ScriptSource, UpstreamConnection } from "./upstream-connection.ts";

/** An HTTP/1.1 upstream on a raw TCP socket whose every byte and every silence a test decides. */
export interface FaultUpstream {
  port: number;
  /** `http://127.0.0.1:PORT/v1`. */
  baseUrl: string;
  /** All requests so far, in the order in which they were complete. */
  readonly requests: readonly RecordedRequest[];
  /** Number of connections accepted so far. */
  readonly connectionCount: number;
  /** Number of connections that are open. */
  readonly openConnectionCount: number;
  /**
   * Sets the script for requests for which nothing is queued. Initially chat requests are answered
   * well.
   */
  script(script: Script | ScriptSource): void;
  /** Queues scripts for the next requests, one each. */
  enqueue(...scripts: (Script | ScriptSource)[]): void;
  /** Resolves with request number `ordinal`, counted from 1, at once when it has arrived. */
  waitForRequest(ordinal: number): Promise<RecordedRequest>;
  /** Returns a step that pauses a script until the test opens it. */
  gate(): Gate;
  /** Closes, with a FIN, every connection on which no request is being answered. */
  closeIdleConnections(): void;
  /** Stops listening and resets the open connections. */
  stop(): void;
}

/** Starts a fault upstream on a free port of 127.0.0.1. */
export async function startFaultUpstream(): Promise<FaultUpstream> {
  const record = new RequestRecord();
  const behaviour = new Behaviour();
  const connections = new Set<UpstreamConnection>();
  let connectionCount = 0;
  const listener = Bun.listen<UpstreamConnection>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = new UpstreamConnection(socket, connectionCount, (request) => {
          const script = behaviour.next(request);
          record.add(request);
          return script;
        });
        connections.add(socket.data);
        connectionCount += 1;
      },
      data: (socket, bytes) => socket.data.onData(bytes),
      drain: (socket) => socket.data.onDrain(),
      close: (socket) => closeConnection(socket, connections),
      error: (socket) => closeConnection(socket, connections),
    },
  });
  return {
    port: listener.port,
    baseUrl: `http://127.0.0.1:${listener.port}/v1`,
    requests: record.requests,
    get connectionCount() {
      return connectionCount;
    },
    get openConnectionCount() {
      return connections.size;
    },
    script: (script) => behaviour.set(script),
    enqueue: (...scripts) => behaviour.enqueue(scripts),
    waitForRequest: (ordinal) => record.waitFor(ordinal),
    gate: () => new Gate(),
    closeIdleConnections() {
      for (const connection of connections) if (connection.isIdle) connection.finish();
    },
    stop() {
      for (const connection of connections) connection.abandon();
      listener.stop(true);
    },
  };
}

function closeConnection(socket: Socket<UpstreamConnection>, open: Set<UpstreamConnection>): void {
  open.delete(socket.data);
  socket.data.onClose();
}

/** Returns a base URL whose port has no listener, so that connections to it are refused. */
export const refusingBaseUrl = (): string => `http://127.0.0.1:${freePort()}/v1`;

class Behaviour {
  private standing: Script | ScriptSource = healthyChat;
  private readonly queued: (Script | ScriptSource)[] = [];

  set(script: Script | ScriptSource): void {
    this.standing = script;
  }

  enqueue(scripts: readonly (Script | ScriptSource)[]): void {
    this.queued.push(...scripts);
  }

  next(request: RecordedRequest): Script {
    const script = this.queued.shift() ?? this.standing;
    try {
      return typeof script === "function" ? script(request) : script;
    } catch (error) {
      console.error("the script of a fault upstream threw:", error);
      return json(
        { error: { message: "the script of the fault upstream threw" } },
        { status: 500 },
      );
    }
  }
}

class RequestRecord {
  readonly requests: RecordedRequest[] = [];
  private readonly waiters: { ordinal: number; resolve: (request: RecordedRequest) => void }[] = [];

  add(request: RecordedRequest): void {
    this.requests.push(request);
    for (const waiter of this.waiters)
      if (waiter.ordinal === this.requests.length) waiter.resolve(request);
  }

  waitFor(ordinal: number): Promise<RecordedRequest> {
    const there = this.requests[ordinal - 1];
    if (there) return Promise.resolve(there);
    const { promise, resolve } = Promise.withResolvers<RecordedRequest>();
    this.waiters.push({ ordinal, resolve });
    return promise;
  }
}

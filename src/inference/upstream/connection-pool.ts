import type { Clock } from "../../platform/lib/clock.ts";
import { Connection, type Place } from "./connection.ts";
import type { ExchangeTie } from "./lifeline.ts";

const idleDefaultMs = 30_000;
const idleConnectionsPerPlaceMax = 1_024;

/** Keeps idle connections by where they lead, newest first, and opens new ones when there is none. */
export class ConnectionPool {
  private readonly idle = new Map<string, Connection[]>();
  private readonly clock: Clock;
  private readonly all = new Set<Connection>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Connections that are open, idle or busy. */
  get size(): number {
    return this.all.size;
  }

  /** An idle connection to a place that can still be trusted; undefined asks for a new one. */
  takeIdle(key: string): Connection | undefined {
    const stack = this.idle.get(key);
    if (stack === undefined) return undefined;
    for (let connection = stack.pop(); connection !== undefined; connection = stack.pop()) {
      if (!connection.isClosed && connection.idleUntilMs > this.clock.monotonicMs())
        return connection;
      connection.destroy();
    }
    return undefined;
  }

  /** Opens a connection; rejects with an `UpstreamFailure`, at once when the client leaves meanwhile. */
  open(place: Place, options: { timeoutMs: number; lifeline: ExchangeTie }): Promise<Connection> {
    const connection = new Connection(place, this.release);
    this.all.add(connection);
    const opened = connection.open(options.timeoutMs);
    options.lifeline.attach(connection);
    options.lifeline.listen();
    return opened;
  }

  /** Ends every exchange that is under way, as if its upstream had hung up. */
  breakOff(): void {
    for (const connection of [...this.all]) connection.breakOff();
  }

  /** Closes every idle connection. */
  close(): void {
    for (const stack of this.idle.values())
      for (const connection of [...stack]) connection.destroy();
    this.idle.clear();
  }

  private readonly release = (connection: Connection, reusable: boolean): void => {
    if (!reusable) {
      this.all.delete(connection);
      return;
    }
    let stack = this.idle.get(connection.place.key);
    if (stack === undefined) this.idle.set(connection.place.key, (stack = []));
    if (stack.length >= idleConnectionsPerPlaceMax) {
      connection.destroy();
      return;
    }
    connection.idleSinceMs = this.clock.monotonicMs();
    connection.idleUntilMs =
      connection.idleSinceMs + Math.min(connection.idleForMs ?? idleDefaultMs, idleDefaultMs);
    stack.push(connection);
  };
}

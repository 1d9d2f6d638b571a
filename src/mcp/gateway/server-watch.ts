import { countText } from "../../platform/kernel/count-text.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { storageKeyOf, type UpstreamServer } from "./upstream-server.ts";
import type { Metrics } from "../../platform/telemetry/metrics.ts";

/** Where calls of tools are counted. Servers of workspaces share one label. */
export type ToolMetrics = Pick<Metrics, "toolCall" | "toolCallDuration">;

/** Failed calls in a row after which a server is left alone. */
const failuresMax = 5;

/** Milliseconds for which it is left alone, until one call tries it again. */
const openMs = 30_000;

/** The most servers that are remembered; the ones that have been calm longest are forgotten. */
const rememberedMax = 5_000;

/** How a server has answered the calls of a workspace at this gateway. */
export interface ServerHealth {
  circuit: "closed" | "open";
  /** Calls in a row that the server did not answer. */
  failures: number;
  /** When it is tried again, in milliseconds since 1970; null while it is used. */
  retryAtMs: number | null;
  /** Duration of the last answered call; null before the first. */
  latencyMs: number | null;
  lastCallAtMs: number | null;
}

interface Watched extends Omit<ServerHealth, "circuit"> {
  /** Whether a call is trying the server again. */
  isTrying: boolean;
}

/** Thrown in place of a call to a server that is left alone. */
class CircuitOpenError extends Error {
  readonly data = { status: 503 };

  constructor(server: UpstreamServer, seconds: number) {
    super(
      `${server.name} failed ${failuresMax} times in a row and is left alone. It is tried again in ${countText(seconds, "second")}.`,
    );
  }
}

/**
 * Watches which servers answer. A server that fails several times in a row is left alone for a
 * while, and then tried by one call at a time. Each workspace has its own view, so that the calls of
 * one cannot keep a server from another.
 */
export class ServerWatch {
  private readonly clock: Clock;
  private readonly metrics: ToolMetrics;
  private readonly watched = new Map<string, Watched>();

  constructor({ clock, metrics }: { clock: Clock; metrics: ToolMetrics }) {
    this.clock = clock;
    this.metrics = metrics;
  }

  /** Returns how a server has answered a workspace. */
  healthOf(server: UpstreamServer, workspaceId: string): ServerHealth {
    const state = this.watched.get(keyOf(server, workspaceId));
    if (state === undefined)
      return {
        circuit: "closed",
        failures: 0,
        retryAtMs: null,
        latencyMs: null,
        lastCallAtMs: null,
      };
    const { isTrying: _, ...health } = state;
    return { ...health, circuit: state.retryAtMs === null ? "closed" : "open" };
  }

  /** Returns the number of servers that are left alone, for a gauge. */
  openCircuits(): number {
    return [...this.watched.values()].filter(({ retryAtMs }) => retryAtMs !== null).length;
  }

  /** Throws `CircuitOpenError` while a server is left alone, except to the call that tries it. */
  admit(server: UpstreamServer, workspaceId: string): void {
    const state = this.watched.get(keyOf(server, workspaceId));
    if (state === undefined || state.retryAtMs === null) return;
    const leftMs = state.retryAtMs - this.clock.nowMs();
    if (leftMs > 0 || state.isTrying)
      throw new CircuitOpenError(server, Math.max(1, Math.ceil(leftMs / 1000)));
    state.isTrying = true;
  }

  /** Notes the outcome of a call that was admitted. */
  note(
    server: UpstreamServer,
    {
      workspaceId,
      outcome,
      latencyMs,
    }: {
      workspaceId: string;
      outcome: "completed" | "refused" | "failed" | "cancelled";
      latencyMs: number;
    },
  ): void {
    const label = server.workspaceId === null ? server.id : "workspace";
    this.metrics.toolCall(label, outcome).inc();
    this.metrics.toolCallDuration(label).observe(latencyMs / 1000);
    const state = this.take(keyOf(server, workspaceId));
    state.isTrying = false;
    state.lastCallAtMs = this.clock.nowMs();
    if (outcome === "cancelled") return;
    state.failures = outcome === "failed" ? state.failures + 1 : 0;
    state.retryAtMs = state.failures >= failuresMax ? this.clock.nowMs() + openMs : null;
    if (outcome !== "failed") state.latencyMs = latencyMs;
  }

  private take(key: string): Watched {
    const state = this.watched.get(key) ?? {
      failures: 0,
      retryAtMs: null,
      latencyMs: null,
      lastCallAtMs: null,
      isTrying: false,
    };
    // The last one used is the last in order.
    this.watched.delete(key);
    this.watched.set(key, state);
    for (const oldest of this.watched.keys()) {
      if (this.watched.size <= rememberedMax) break;
      this.watched.delete(oldest);
    }
    return state;
  }
}

const keyOf = (server: UpstreamServer, workspaceId: string): string =>
  `${storageKeyOf(server)} ${workspaceId}`;

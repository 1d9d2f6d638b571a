import type { Clock } from "../../platform/lib/clock.ts";
import {
  isOnProbation,
  isUntroubled,
  nextHealth,
  settledHealth,
  statesOf,
  unknownHealth,
  type HealthSignal,
  type ProviderHealth,
  type RoutingState,
} from "./provider-health.ts";

/** Status of an upstream in events (contract, "Health and routing states"). */
export type UpstreamStatus = "healthy" | "degraded" | "down" | "unknown";

/** A provider's status changed. */
export interface StatusChange {
  upstreamId: string;
  from: UpstreamStatus;
  to: UpstreamStatus;
  /** Why, for people; undefined where the status says it all. */
  message: string | undefined;
}

const statusBy: Record<RoutingState, UpstreamStatus> = {
  budget_exhausted: "down",
  excluded: "down",
  quarantined: "down",
  deprioritized: "degraded",
};
const messageBy: Record<RoutingState, string> = {
  budget_exhausted: "Its budget for today is spent.",
  excluded: "Its smoke test failed.",
  quarantined: "It failed again and again, and is left alone for a while.",
  deprioritized: "Too many of its answers fail, so others are asked first.",
};

/** The states of all providers; what routing asks, and what tells of changes. */
export class ProviderStates {
  private readonly clock: Clock;
  private readonly onChange: (change: StatusChange) => void;
  private readonly health = new Map<string, ProviderHealth>();
  /** Those of them that may be in a state: mostly none, and then planning a request looks nobody up. */
  private readonly troubled = new Map<string, ProviderHealth>();
  private readonly statuses: Map<string, UpstreamStatus>;

  /** `known` are the statuses that were told last, before the process was started anew. */
  constructor(options: {
    clock: Clock;
    known: ReadonlyMap<string, UpstreamStatus>;
    onChange(change: StatusChange): void;
  }) {
    this.clock = options.clock;
    this.onChange = options.onChange;
    this.statuses = new Map(options.known);
  }

  /** Takes note of a signal; constant work. */
  record(providerId: string, signal: HealthSignal): void {
    const nowMs = this.clock.nowMs();
    const health = nextHealth(this.health.get(providerId) ?? unknownHealth, signal, nowMs);
    this.keep(providerId, health);
    this.tell(providerId, { health, nowMs });
  }

  /** The gravest state of a provider; undefined for a healthy one. */
  stateOf(providerId: string): RoutingState | undefined {
    const health = this.troubled.size === 0 ? undefined : this.troubled.get(providerId);
    return health && statesOf(health, this.clock.nowMs())[0];
  }

  /** Every state that a provider is in, the gravest first. */
  statesOf(providerId: string): RoutingState[] {
    const health = this.health.get(providerId);
    return health === undefined ? [] : statesOf(health, this.clock.nowMs());
  }

  /** What is remembered of a provider; undefined where nothing is. */
  healthOf(providerId: string): ProviderHealth | undefined {
    return this.health.get(providerId);
  }

  /** Providers of which anything is remembered. */
  knownIds(): string[] {
    return [...this.health.keys()];
  }

  /** Providers whose quarantine is over and that nobody has asked enough since. */
  onProbation(): string[] {
    const nowMs = this.clock.nowMs();
    return [...this.health].filter(([, health]) => isOnProbation(health, nowMs)).map(([id]) => id);
  }

  /** Tells of what changed by the mere passing of time. */
  check(): void {
    const nowMs = this.clock.nowMs();
    for (const [providerId, before] of this.health) {
      const health = settledHealth(before, nowMs);
      if (health !== before) this.keep(providerId, health);
      this.tell(providerId, { health, nowMs });
    }
  }

  private keep(providerId: string, health: ProviderHealth): void {
    this.health.set(providerId, health);
    if (!isUntroubled(health)) this.troubled.set(providerId, health);
    else if (this.troubled.size > 0) this.troubled.delete(providerId);
  }

  private tell(
    upstreamId: string,
    { health, nowMs }: { health: ProviderHealth; nowMs: number },
  ): void {
    const [state] = statesOf(health, nowMs);
    const to = state === undefined ? "healthy" : statusBy[state];
    const from = this.statuses.get(upstreamId) ?? "unknown";
    if (from === to) return;
    // A provider that nobody saw serving is not well yet.
    if (from === "unknown" && to === "healthy" && health.lastSuccessMs === undefined) return;
    this.statuses.set(upstreamId, to);
    this.onChange({
      upstreamId,
      from,
      to,
      message: state === undefined ? undefined : messageBy[state],
    });
  }
}

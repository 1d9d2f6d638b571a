import type { Clock } from "../../platform/kernel/clock.ts";
import {
  type RoutingState,
  type ProviderHealth,
  unknownHealth,
  type HealthSignal,
  nextHealth,
  statesOf,
  isOnProbation,
  shouldBeLast,
  type UpstreamStatus,
  type StatusChange,
} from "./provider-health.ts";

/**
 * Returns the health at a later time without a signal in between; the same object where nothing
 * changes.
 */
function settledHealth(health: ProviderHealth, nowMs: number): ProviderHealth {
  const deprioritized = shouldBeLast(health, nowMs);
  return deprioritized === health.deprioritized ? health : { ...health, deprioritized };
}

/**
 * Returns whether a provider is in no state, as most are during planning, without computing its
 * decay. Between signals, time only reduces the weight of failures, so it makes no provider
 * deprioritized.
 */
const isUntroubled = ({
  deprioritized,
  quarantine,
  excluded,
  budgetExhausted,
}: ProviderHealth): boolean =>
  !deprioritized && quarantine === undefined && !excluded && !budgetExhausted;

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

/** Keeps the states of all providers, answers routing, and reports changes. */
export class ProviderStates {
  private readonly clock: Clock;
  private readonly onChange: (change: StatusChange) => void;
  private readonly health = new Map<string, ProviderHealth>();
  /**
   * The providers that may be in a state: usually none, and then planning a request looks none up.
   */
  private readonly troubled = new Map<string, ProviderHealth>();
  private readonly statuses: Map<string, UpstreamStatus>;

  /** `known` are the statuses that were last reported before the process restarted. */
  constructor(options: {
    clock: Clock;
    known: ReadonlyMap<string, UpstreamStatus>;
    onChange(change: StatusChange): void;
  }) {
    this.clock = options.clock;
    this.onChange = options.onChange;
    this.statuses = new Map(options.known);
  }

  /** Records a signal, in constant time. */
  record(providerId: string, signal: HealthSignal): void {
    const nowMs = this.clock.nowMs();
    const health = nextHealth(this.health.get(providerId) ?? unknownHealth, signal, nowMs);
    this.keep(providerId, health);
    this.tell(providerId, { health, nowMs });
  }

  /** Returns the most severe state of a provider; undefined for a healthy one. */
  stateOf(providerId: string): RoutingState | undefined {
    const health = this.troubled.size === 0 ? undefined : this.troubled.get(providerId);
    return health && statesOf(health, this.clock.nowMs())[0];
  }

  /** Returns every state that a provider is in, most severe first. */
  statesOf(providerId: string): RoutingState[] {
    const health = this.health.get(providerId);
    return health === undefined ? [] : statesOf(health, this.clock.nowMs());
  }

  /** Returns what is remembered of a provider; undefined where nothing is. */
  healthOf(providerId: string): ProviderHealth | undefined {
    return this.health.get(providerId);
  }

  /** Returns the providers of which anything is remembered. */
  knownIds(): string[] {
    return [...this.health.keys()];
  }

  /** Returns the providers whose quarantine is over and that have had too few successes since. */
  onProbation(): string[] {
    const nowMs = this.clock.nowMs();
    return [...this.health].filter(([, health]) => isOnProbation(health, nowMs)).map(([id]) => id);
  }

  /** Reports what changed by the passing of time alone. */
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
    // A provider that has not served a request yet does not count as healthy.
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

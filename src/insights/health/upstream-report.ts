import type { Budget, ProviderBudgets } from "./provider-budgets.ts";
import type { RoutingState } from "./provider-health.ts";
import type { ProviderStates } from "./provider-states.ts";
import type { RoutedProvider } from "./service-components.ts";
import type { SmokeResult } from "./smoke-store.ts";
import type { SmokeTests } from "./smoke-tests.ts";
import type { Traffic } from "./traffic.ts";
import type { TrafficSums } from "./traffic-window.ts";

/** Everything that is known of one provider. Times in milliseconds. */
export interface UpstreamReport {
  id: string;
  name: string;
  /** Whether requests can be routed to it with a credential of the platform. */
  routed: boolean;
  /** Every state that it is in, the gravest first. */
  states: readonly RoutingState[];
  /** The quarantine that it is in or was in lately. */
  quarantine: { untilMs: number; lengthMs: number } | undefined;
  failuresInRow: number;
  lastSuccessMs: number | undefined;
  lastFailureMs: number | undefined;
  lastHour: TrafficSums | undefined;
  budget: Readonly<Budget> | undefined;
  smoke: SmokeResult | undefined;
}

/** What the reports are made of. */
export interface UpstreamParts {
  traffic: Traffic;
  states: ProviderStates;
  smoke: SmokeTests;
  budgets: ProviderBudgets;
  routed: readonly RoutedProvider[];
}

/** Of every provider that is routed to or of which anything is remembered, by its id. */
export function upstreamReports({
  traffic,
  states,
  smoke,
  budgets,
  routed,
}: UpstreamParts): UpstreamReport[] {
  const names = new Map(routed.map(({ id, name }) => [id, name]));
  const results = new Map(smoke.current().map((result) => [result.providerId, result]));
  const ids = [...new Set([...names.keys(), ...states.knownIds()])].sort();
  return ids.map((id) => {
    const health = states.healthOf(id);
    return {
      id,
      name: names.get(id) ?? id,
      routed: names.has(id),
      states: states.statesOf(id),
      quarantine: health?.quarantine,
      failuresInRow: health?.failuresInRow ?? 0,
      lastSuccessMs: health?.lastSuccessMs,
      lastFailureMs: health?.lastFailureMs || undefined,
      lastHour: traffic.ofProvider(id),
      budget: budgets.budgetOf(id),
      smoke: results.get(id),
    };
  });
}

import {
  type ApiData,
  type Component,
  type ComponentStatus,
  type ProviderRow,
  type RoutedProvider,
  type RoutingData,
  type SmokeData,
  type WorkflowData,
  apiComponent,
  archiveComponent,
  providersComponent,
  routingComponent,
  smokeComponent,
  workflowComponent,
} from "./components.ts";
import type { HealthEvent } from "./health-events.ts";
import type { JobRegistry } from "./job-registry.ts";
import type { ProviderStates } from "./provider-health.ts";
import type { SmokeTests } from "./smoke-tests.ts";
import type { Traffic } from "./traffic.ts";

/** What the snapshot is made of; all of it in memory, so that no outage keeps it from clients. */
export interface HealthParts {
  traffic: Traffic;
  states: ProviderStates;
  smoke: SmokeTests;
  jobs: JobRegistry;
  events: readonly HealthEvent[];
  /** Providers that requests can be routed to. */
  routed: readonly RoutedProvider[];
  isPublic(providerId: string): boolean;
  /** Whether Postgres answered when it was asked last; undefined where it is not in use. */
  postgresUp: boolean | undefined;
  /** Whether the archive answered when it was asked last; undefined where there is none. */
  clickHouseUp?: boolean | undefined;
  /** Whether the server answers that gateways share (Valkey); undefined where they share none. */
  sharedUp?: boolean | undefined;
  version: string;
  nowMs: number;
}

/** The health snapshot of the contract. */
export interface HealthSnapshot {
  status: ComponentStatus;
  description: string;
  version: string;
  checked_at: string;
  components: {
    api: Component<ApiData>;
    providers: Component<{ providers: ProviderRow[] }>;
    smoke_tests: Component<SmokeData> | null;
    workflows: Component<WorkflowData> | null;
    routing: Component<RoutingData> | null;
    postgres: Component;
    clickhouse: Component;
  };
  events: { at: string; upstream_id: string; from: string; to: string; message?: string }[];
}

const texts: Record<ComponentStatus, string> = {
  healthy: "Everything works.",
  degraded: "More requests fail than should.",
  partial: "Some parts have trouble; requests are served.",
  down: "Requests cannot be served.",
  no_signal: "Too few requests in the last hour to tell.",
};

/** Without the server that gateways share, none of them knows what it may spend. */
const withoutShared = (traffic: Traffic): Component<ApiData> => ({
  ...apiComponent(traffic.ofService()),
  status: "down",
  description: texts.down,
  note: "The server of shared state (Valkey) does not answer; inference is refused until it does.",
});

/** The snapshot of a moment. */
export function healthSnapshot(parts: HealthParts): HealthSnapshot {
  const { traffic, states, smoke, jobs, nowMs } = parts;
  const statesOf = (providerId: string) => states.statesOf(providerId);
  const components: HealthSnapshot["components"] = {
    api: parts.sharedUp === false ? withoutShared(traffic) : apiComponent(traffic.ofService()),
    providers: providersComponent(traffic.ofProviders(parts.isPublic), statesOf),
    smoke_tests: smoke.applies
      ? smokeComponent(smoke.current(), { lastRunMs: smoke.lastRun, nowMs })
      : null,
    workflows: workflowComponent(jobs.reports()),
    routing: routingComponent(parts.routed, statesOf),
    postgres: archiveComponent("Postgres", parts.postgresUp),
    clickhouse: archiveComponent("ClickHouse", parts.clickHouseUp),
  };
  const { api, providers, smoke_tests: smokeTests, workflows, routing } = components;
  const status = overallStatus({
    api: api.status,
    routing: routing?.status,
    around: [providers.status, smokeTests?.status, workflows?.status],
  });
  return {
    status,
    description: texts[status],
    version: parts.version,
    checked_at: new Date(nowMs).toISOString(),
    components,
    events: parts.events.map(({ atMs, upstreamId, from, to, message }) => ({
      at: new Date(atMs).toISOString(),
      upstream_id: upstreamId,
      from,
      to,
      ...(message === undefined ? {} : { message }),
    })),
  };
}

/**
 * The status of the whole. What requests meet comes first; of what is around them, trouble makes
 * the whole `partial` and no worse. Undefined means that a component does not apply.
 */
export function overallStatus({
  api,
  routing,
  around,
}: {
  api: ComponentStatus;
  routing: ComponentStatus | undefined;
  around: readonly (ComponentStatus | undefined)[];
}): ComponentStatus {
  if (api === "down" || routing === "down") return "down";
  if (api === "degraded") return "degraded";
  const troubled = [routing, ...around].some(
    (status) => status !== undefined && status !== "healthy" && status !== "no_signal",
  );
  return troubled ? "partial" : api;
}

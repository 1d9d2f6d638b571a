import type { Ledger } from "../account/ledger/ledger.ts";
import type { Clock } from "../platform/lib/clock.ts";
import type { CatalogModel, CatalogSnapshot, UpstreamRoute } from "./catalog/model.ts";
import type { HealthWindows } from "./routing/health-windows.ts";
import type { KeepAliveTicker } from "./keep-alive.ts";
import type { InferenceObserver } from "./observer.ts";
import type { UpstreamClient, UpstreamTarget } from "./upstream/upstream-client.ts";

/** What a lost client does to its upstream: stop it, or read on to its own usage under a cap. */
export type DisconnectPolicy = "abort" | "drain";

/** Everything that serving a request needs, built once. */
export interface InferenceDependencies {
  catalog(): CatalogSnapshot;
  ledger: Ledger;
  upstream: UpstreamClient;
  health: HealthWindows;
  observer: InferenceObserver;
  clock: Clock;
  random(): number;
  keepAlive: KeepAliveTicker;
  disconnect: DisconnectPolicy;
  /** Where a route's requests go; the same object for the same route. */
  targetOf(route: UpstreamRoute): UpstreamTarget;
  /** Whether this process can call a route with a platform credential and bill for it. */
  isServable(route: UpstreamRoute, model: CatalogModel): boolean;
}

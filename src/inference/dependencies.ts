import type { ProviderKeys } from "../account/byok/provider-keys.ts";
import type { GenerationRecord } from "../insights/generation-record.ts";
import type { LedgerPort } from "../account/ledger/ledger-port.ts";
import type { UncollectedCharges } from "../account/ledger/uncollected-charges.ts";
import type { LlmKeyCaller } from "../account/keys/caller.ts";
import type { Privacy } from "../account/security/privacy.ts";
import type { Clock } from "../platform/lib/clock.ts";
import type { CatalogModel, CatalogSnapshot, UpstreamRoute } from "./catalog/model.ts";
import type { HealthWindows } from "./routing/health-windows.ts";
import type { StickySessions } from "./routing/sticky-sessions.ts";
import type { CallSignatures } from "./interpret/call-signatures.ts";
import type { KeepAliveTicker } from "./keep-alive.ts";
import type { OpenedRoutes } from "./opened-routes.ts";
import type { InferenceObserver } from "./observer.ts";
import type { TargetLookup } from "./upstream-targets.ts";
import type { UpstreamClient } from "./upstream/upstream-client.ts";

/** What a lost client does to its upstream: stop it, or read on to its own usage under a cap. */
export type DisconnectPolicy = "abort" | "drain";

/** Everything that serving a request needs, built once. */
export interface InferenceDependencies {
  catalog(): CatalogSnapshot;
  ledger: LedgerPort;
  /** Whether the database has stopped taking charges. */
  chargesStall(): boolean;
  /** Where charges go that the database refused. */
  uncollected: Pick<UncollectedCharges, "keep" | "count" | "stop">;
  /** Callers' own keys at providers, and those that were donated. */
  providerKeys: ProviderKeys;
  openedRoutes: OpenedRoutes;
  upstream: UpstreamClient;
  health: HealthWindows;
  observer: InferenceObserver;
  /** Takes the records of requests that are not settled: failed ones and those answered from a cache. */
  unsettled: { write(record: GenerationRecord): void };
  clock: Clock;
  random(): number;
  keepAlive: KeepAliveTicker;
  callSignatures: CallSignatures;
  sessions: StickySessions;
  /** What the workspace and the key of a caller demand of every provider. */
  privacyOf(caller: LlmKeyCaller): Privacy;
  /** Whether a workspace has credits for signing up that are held until something happens; absent where nobody has any. */
  holdsBonus: ((workspaceId: string) => Promise<boolean>) | undefined;
  disconnect: DisconnectPolicy;
  /** Where a route's requests go, whole or streamed; the same object for the same route. */
  targetOf: TargetLookup;
  /** Whether this process can call a route with a platform credential and bill for it. */
  isServable(route: UpstreamRoute, model: CatalogModel): boolean;
}

import type { ProviderKeys } from "../../byok/provider-keys.ts";
import type { GenerationRecord, AttemptRecord } from "../../insights/generation-record.ts";
import type { LedgerPort } from "../../billing/ledger/ledger-port.ts";
import type { UncollectedCharges } from "../../billing/ledger/uncollected-charges.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { Privacy } from "../../identity/workspaces/privacy.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CatalogModel, CatalogSnapshot, UpstreamRoute } from "../catalog/model.ts";
import type { HealthWindows } from "../routing/health-windows.ts";
import type { StickySessions } from "../routing/sticky-sessions.ts";
import type { CallSignatures } from "./chat-call.ts";
import type { KeepAliveTicker } from "./stream/relayed-stream.ts";
import type { OpenedRoutes } from "./provider-credentials.ts";
import type { TargetLookup } from "./upstream-targets.ts";
import type { UpstreamClient } from "../upstream/upstream-client.ts";
import type { ErrorCode, GatewayError } from "../../platform/kernel/errors.ts";

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
  /**
   * Takes the records of requests that are not settled: failed ones and those answered from a
   * cache.
   */
  unsettled: { write(record: GenerationRecord): void };
  clock: Clock;
  random(): number;
  keepAlive: KeepAliveTicker;
  callSignatures: CallSignatures;
  sessions: StickySessions;
  /** What the workspace and the key of a caller demand of every provider. */
  privacyOf(caller: LlmKeyCaller): Privacy;
  /**
   * Whether a workspace has credits for signing up that are held until something happens; absent
   * where there are none.
   */
  holdsBonus: ((workspaceId: string) => Promise<boolean>) | undefined;
  disconnect: DisconnectPolicy;
  /** Returns the address where an error code is explained. */
  errorAddress(code: ErrorCode): string;
  /** Where a route's requests go, whole or streamed; the same object for the same route. */
  targetOf: TargetLookup;
  /** Whether this process can call a route with a platform credential and bill for it. */
  isServable(route: UpstreamRoute, model: CatalogModel): boolean;
}

/** Told of what happened, for metrics and traces; must not throw and must not wait. */
export interface InferenceObserver {
  /** An attempt at a provider ended. */
  attemptEnded(attempt: AttemptRecord): void;
  /** A request was settled and its record written. */
  settled(record: GenerationRecord, timing: RequestTiming): void;
  /** A request ended with an error and was not settled. */
  failed(request: {
    error: GatewayError;
    traceId: string;
    workspaceId: string;
    keyId: string;
    surface: string;
    requestedModel: string;
    attempts: readonly AttemptRecord[];
    durationMs: number;
  }): void;
  /** A settlement failed; the caller received an error, and nothing was charged. */
  settlementFailed(error: unknown, generationId: string): void;
  /** An answer was given and charged, but could not be stored for later. */
  responseNotKept(error: unknown, responseId: string): void;
  streamOpened(): void;
  streamClosed(): void;
}

/** Where the time of a request went, in milliseconds of the monotonic clock. */
export interface RequestTiming {
  startedMs: number;
  /** Sending of the first upstream request. */
  firstSendMs: number;
  firstContentMs: number | null;
  /** The last byte of the upstream's answer. */
  upstreamEndMs: number;
  settledMs: number;
}

import type { AttemptRecord, GenerationRecord } from "../../insights/generation-record.ts";
import type { GatewayError, ErrorCode } from "../../platform/kernel/errors.ts";
import type { MeteredUsage } from "../canonical/response.ts";
import type { ContentPort } from "./settlement/keep-content.ts";
import type { InferenceCall } from "./inference-call.ts";
import type { SealMemory } from "./credentials/seal-memory.ts";
import type { CallSignatures } from "./stream/call-signatures.ts";
import type { KeepAliveTicker } from "./stream/keep-alive-ticker.ts";
import type { ProviderFiles } from "./provider-files/provider-files.ts";
import type { Candidate, LeftOut } from "../routing/candidate.ts";
import type { AbortScope } from "../upstream/abort-scope.ts";
import type { ProviderKeys } from "../../byok/provider-keys.ts";
import type { LedgerPort } from "../../billing/ledger/ledger-port.ts";
import type { UncollectedCharges } from "../../billing/ledger/uncollected-charges.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { Privacy } from "../../identity/workspaces/privacy.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CatalogModel, CatalogSnapshot, UpstreamRoute } from "../catalog/model.ts";
import type { HealthWindows } from "../routing/health/health-windows.ts";
import type { StickySessions } from "../routing/sticky-sessions.ts";
import type { OpenedRoutes } from "./credentials/opened-routes.ts";
import type { TargetLookup } from "./upstream-targets.ts";
import type { UpstreamClient } from "../upstream/upstream-client.ts";
import type { RequestTiming } from "./served-answer.ts";
import type { AttemptFailure } from "../upstream/upstream-failure.ts";

/** The state that one execution carries from step to step. */
export interface Execution {
  deps: InferenceDependencies;
  call: InferenceCall;
  requestedModel: string;
  /** Whether the requested model is a routing preset. */
  viaRouter: boolean;
  /** Whether the caller prefers a refusal to a lost parameter (`provider.require_parameters`). */
  losesNothing: boolean;
  inputTokens: number;
  abortScope: AbortScope;
  candidates: readonly Candidate[];
  leftOut: readonly LeftOut[];
  failed: FailedAttempt[];
  /** The last candidate whose model failed to answer, with the usage that its provider reported. */
  consumed: { candidate: Candidate; metered: MeteredUsage } | undefined;
  /** Candidates that were not called because their providers have no retry budget left. */
  heldBack: LeftOut[];
  /**
   * Why candidates were not called: their dialect cannot express the request, the caller cannot
   * afford them, or nothing is left of the quota of their key.
   */
  notCalled: GatewayError[];
  balanceAtAdmissionNano: bigint | undefined;
  /**
   * The largest context window, in tokens, that the prompt overflowed; undefined while no provider
   * has reported an overflow.
   */
  overflownTokens: number | undefined;
  /**
   * The amount that the request may use, where its worst case was too expensive to be held whole.
   */
  allowance: Allowance | undefined;
  firstSendMs: number;
  /** Whether a provider has answered with success, so that it may charge for the input. */
  accepted: boolean;
}

/**
 * The fate of the upstream request when its client leaves: it is aborted, or read on to its usage,
 * within a limit.
 */
export type DisconnectPolicy = "abort" | "drain";

/** The dependencies of serving requests, built once. */
export interface InferenceDependencies {
  /** Returns the catalog, with a workspace's own names of models where its id is passed. */
  catalog(workspaceId?: string): CatalogSnapshot;
  ledger: LedgerPort;
  /** Whether the database has stopped taking charges. */
  chargesStall(): boolean;
  /** Keeps the charges that the database refused. */
  uncollected: Pick<UncollectedCharges, "keep" | "count" | "stop">;
  /** Callers' own provider keys, and the donated ones. */
  providerKeys: ProviderKeys;
  openedRoutes: OpenedRoutes;
  upstream: UpstreamClient;
  /** The files that providers store; absent where contents are always sent. */
  providerFiles?: ProviderFiles | undefined;
  health: HealthWindows;
  observer: InferenceObserver;
  /**
   * Writes the records of requests that are not settled: failed ones, and those answered from a
   * cache.
   */
  unsettled: { write(record: GenerationRecord): void };
  clock: Clock;
  random(): number;
  keepAlive: KeepAliveTicker;
  callSignatures: CallSignatures;
  /** Remembers sealed reasoning that providers cannot read. */
  sealMemory: SealMemory;
  sessions: StickySessions;
  /** Returns what a caller's workspace and key demand of every provider. */
  privacyOf(caller: LlmKeyCaller): Privacy;
  /** Takes prompts and answers of workspaces that keep them; absent where there is no archive. */
  contents?: ContentPort | undefined;
  /**
   * Returns whether a workspace has sign-up credits that are held until a condition is met; absent
   * where there are no such credits.
   */
  holdsBonus: ((workspaceId: string) => Promise<boolean>) | undefined;
  disconnect: DisconnectPolicy;
  /** Milliseconds after which a stream without content begins with a ping; absent means never. */
  keepaliveBeforeContentMs?: number | undefined;
  /** Returns the keyed hash of an id of a caller's user, as providers are sent it. */
  scopedId(id: string): string;
  /** Returns the address where an error code is explained. */
  errorAddress(code: ErrorCode): string;
  /**
   * Returns where a route's requests are sent, whole or streamed; the same object for the same
   * route.
   */
  targetOf: TargetLookup;
  /** Returns whether this process can call a route with a platform credential and bill for it. */
  isServable(route: UpstreamRoute, model: CatalogModel): boolean;
}

/** Receives events for metrics and traces. Its methods must not throw and must not block. */
export interface InferenceObserver {
  /** Called when an attempt at a provider has ended. */
  attemptEnded(attempt: AttemptRecord): void;
  /** Called when a request was settled and its record written. */
  settled(record: GenerationRecord, timing: RequestTiming): void;
  /** Called when a request ended with an error and was not settled. */
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
  /** Called when a settlement failed: the caller received an error, and nothing was charged. */
  settlementFailed(error: unknown, generationId: string): void;
  /** Called when an answer was given and charged, but could not be stored. */
  responseNotKept(error: unknown, responseId: string): void;
  /** Called when the gateway itself failed on a request whose stream had begun before its content. */
  earlyStreamFailed(error: unknown, generationId: string): void;
  streamOpened(): void;
  streamClosed(): void;
}

/** An attempt that failed, with its judgement. */
export interface FailedAttempt {
  record: AttemptRecord;
  failure: AttemptFailure;
}

/** The amount that a request may use, where its worst case was too expensive to be held whole. */
export interface Allowance {
  /**
   * The amount held, and the amount that the balance and the limits could have paid at admission.
   */
  heldNano: bigint;
  freeNano: bigint;
  /**
   * Whether the hold grows with the stream. Its cap is then `freeNano`; otherwise it is `heldNano`.
   */
  grows: boolean;
  /**
   * The amount left under the limits that count the caller's own provider keys; undefined where
   * there is no such limit.
   */
  byokNano: bigint | undefined;
}

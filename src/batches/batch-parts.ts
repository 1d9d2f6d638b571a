import type { FileStore } from "../files/file-store.ts";
import type { LlmKeyCaller } from "../identity/keys/caller.ts";
import type { ProviderBatchApi } from "../inference/pipeline/batches/provider-batches.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { BatchStore } from "./batch-store.ts";
import type { FinishParts } from "./finish-batch.ts";
import type { ModelRefusal } from "./input-reader.ts";
import type { RunLine } from "./line-form.ts";
import type { LineStore } from "./line-store.ts";
import type { ProviderBatchStore } from "./providers/provider-batch-store.ts";

/** The dependencies of running batches. */
export interface BatchRunnerParts extends FinishParts {
  batches: BatchStore;
  lines: LineStore;
  files: FileStore;
  clock: Clock;
  run: RunLine;
  /** Returns the key of a batch, if it may still be used. */
  callerOf(keyId: string): LlmKeyCaller | undefined;
  /** Returns why a key cannot use a model by that name; undefined where it can. */
  refuseModel(caller: LlmKeyCaller, model: string): ModelRefusal | undefined;
  /** The most lines at once on this gateway. */
  concurrency: number;
  /** Returns how many requests of clients are in progress on this gateway; lines are none. */
  requestsInProgress(): number;
  /** Whether other gateways may work on the same database. */
  isShared: boolean;
  /** The batches of providers; absent where they are not to be used. */
  provider?: ProviderBatchParts | undefined;
  /** Reads the time by which batches go, where other gateways work on them. */
  beforeLook(): Promise<void>;
  /** Does what is due beside the lines: sends notices, and deletes what was left. */
  afterLook(): Promise<void>;
  onError(error: unknown): void;
}

/** What is held of a workspace's money for the lines of a batch that a provider runs. */
export interface BatchHolds {
  /** Takes the hold. Returns false where the whole is wanted and less is free. */
  take(
    batchId: string,
    caller: LlmKeyCaller,
    hold: { nano: bigint; whole: boolean },
  ): Promise<boolean>;
  /** Returns whether this gateway has the hold, and had it renewed lately. */
  has(batchId: string): boolean;
  /** Runs `take`, which takes an amount of it for one request. */
  outOf<Result>(batchId: string, nano: bigint, take: () => Result): Result;
  free(batchId: string): void;
  freeAll(): void;
}

/** The dependencies of batches that providers run, beside those of all batches. */
export interface ProviderBatchParts {
  places: ProviderBatchStore;
  holds: BatchHolds;
  /**
   * Returns the API of a provider with an own key of the workspace, or with the platform's
   * credential; undefined where it has none.
   */
  apiOf(
    providerId: string,
    account: { workspaceId: string; keyId: string | null },
  ): ProviderBatchApi | undefined;
  /** Writes the key of a caller for the time when it may be gone, and reads it again. */
  keepKey(caller: LlmKeyCaller): string | undefined;
  keptCaller(workspaceId: string, text: string): LlmKeyCaller | undefined;
  /** Milliseconds between looks at a provider's batch. */
  pollMs: number;
}

/** The dependencies of running batches where providers run them too. */
export type SharedBatchParts = BatchRunnerParts & { provider: ProviderBatchParts };

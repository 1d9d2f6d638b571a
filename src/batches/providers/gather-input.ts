import type { FileStore } from "../../files/file-store.ts";
import type { ProviderBatchApi } from "../../inference/pipeline/batches/provider-batches.ts";
import type { BatchLine } from "../batch.ts";
import type { LineOutcome, RunLine } from "../line-form.ts";
import type { LineStore } from "../line-store.ts";

/** Why a batch's lines cannot all run in batches of a provider. */
export class RunsHereError extends Error {}

/** The dependencies of preparing a batch for a provider. */
export interface GatherParts {
  files: FileStore;
  lines: LineStore;
  run: RunLine;
  /**
   * Returns the API for batches of a provider, with the workspace's own key or the platform's
   * credential; undefined where it has none.
   */
  apiOf(providerId: string, account: string | null): ProviderBatchApi | undefined;
  /** Stores content as a file that no list shows; returns its id. */
  store(content: AsyncIterable<Uint8Array>): Promise<string>;
  /** Stores that a line has failed, as it would fail anywhere. */
  fail(line: BatchLine, outcome: LineOutcome): Promise<void>;
  /** Whether the gateway is stopping. */
  isStopping(): boolean;
}

/** Returns the number of the line that such an id names; undefined for one of another batch. */
export function lineOfId(batchId: string, customId: string): number | undefined {
  const [head, number] = customId.split("-");
  const line = Number(number);
  return head === batchId.slice(-16) && Number.isSafeInteger(line) ? line : undefined;
}

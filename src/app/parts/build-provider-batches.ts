import type { Kysely } from "kysely";
import type { BatchTables } from "../../batches/batch.ts";
import type { BatchHolds, ProviderBatchParts } from "../../batches/batch-parts.ts";
import type { ProviderKeys } from "../../byok/provider-keys.ts";
import { ProviderBatchStore } from "../../batches/providers/provider-batch-store.ts";
import type { LedgerPort } from "../../billing/ledger/ledger-port.ts";
import { type LlmKeyCaller, spendingKeyOf, spendingParentOf } from "../../identity/keys/caller.ts";
import type { CredentialDirectory } from "../../identity/keys/credential-directory.ts";
import type { LlmKey } from "../../identity/keys/llm-key-store.ts";
import type { CatalogSnapshot } from "../../inference/catalog/model.ts";
import { anthropicBatches } from "../../inference/pipeline/batches/anthropic-batches.ts";
import { googleBatches } from "../../inference/pipeline/batches/google-batches.ts";
import { openaiBatches } from "../../inference/pipeline/batches/openai-batches.ts";
import type { ProviderBatchApi } from "../../inference/pipeline/batches/provider-batches.ts";
import { ProviderApi } from "../../inference/pipeline/batches/provider-api.ts";
import type { UpstreamClient } from "../../inference/upstream/upstream-client.ts";
import { type Clock, hourMs } from "../../platform/kernel/clock.ts";
import { newId } from "../../platform/kernel/ids.ts";

const apis = { openai: openaiBatches, anthropic: anthropicBatches, google: googleBatches };

/** Builds what batches need that providers run. */
export function buildProviderBatches({
  database,
  ledger,
  directory,
  upstream,
  clock,
  catalog,
  providerKeys,
  isShared,
  pollMs,
}: {
  database: Kysely<BatchTables>;
  ledger: LedgerPort;
  directory: CredentialDirectory;
  upstream: UpstreamClient;
  clock: Clock;
  catalog(): CatalogSnapshot;
  providerKeys: Pick<ProviderKeys, "own" | "secretOf">;
  /** Whether processes share the ledger, which then answers with promises. */
  isShared: boolean;
  pollMs: number;
}): ProviderBatchParts & { holds: LedgerBatchHolds } {
  return {
    places: new ProviderBatchStore(database),
    holds: new LedgerBatchHolds({ ledger, clock, isShared }),
    apiOf(providerId, { workspaceId, keyId: id }): ProviderBatchApi | undefined {
      const provider = catalog().providers.get(providerId);
      const key = id === null ? undefined : providerKeys.own(workspaceId, { providerId, id });
      const apiKey = id === null ? provider?.apiKey : key && providerKeys.secretOf(key);
      if (provider?.batches === undefined || apiKey === undefined) return undefined;
      return apis[provider.batches.api](new ProviderApi({ ...provider, apiKey }, upstream));
    },
    keepKey: (caller) => (caller.run === undefined ? keptText(caller.key) : undefined),
    keptCaller(workspaceId, text) {
      const workspace = directory.workspace(workspaceId);
      return workspace && { kind: "llm-key", key: keyOf(text), workspace };
    },
    pollMs,
  };
}

/** Writes a key without the hashes of its secrets. */
const keptText = ({ previous: _, ...key }: LlmKey): string =>
  JSON.stringify({ ...key, hash: "" }, (__, value: unknown) =>
    typeof value === "bigint" ? { nano: String(value) } : value,
  );

/**
 * Reads a key. What it may use was checked when its requests were handed over: their answers are
 * charged to it, also where it was revoked since then.
 */
function keyOf(text: string): LlmKey {
  const key = JSON.parse(text, (_, value: unknown) => {
    const { nano } = Object(value) as { nano?: unknown };
    return typeof nano === "string" ? BigInt(nano) : value;
  }) as LlmKey;
  const { connection: _, parentKeyId: __, ...rest } = key;
  return {
    ...rest,
    disabled: false,
    expiresAtMs: null,
    allowedModels: null,
    allowedEndpoints: null,
    allowedTools: null,
  };
}

interface Held {
  holdId: string;
  nano: bigint;
  takenMs: number;
  caller: LlmKeyCaller;
}

/** Milliseconds after which a hold is renewed, before the ledger frees it. */
const renewMs = hourMs;

/** Holds of the ledger for the lines of batches that providers run, one for each batch. */
class LedgerBatchHolds implements BatchHolds {
  private readonly held = new Map<string, Held>();
  private readonly ledger: LedgerPort;
  private readonly clock: Clock;
  private readonly isShared: boolean;
  private last: Promise<unknown> = Promise.resolve();

  constructor(parts: { ledger: LedgerPort; clock: Clock; isShared: boolean }) {
    this.ledger = parts.ledger;
    this.clock = parts.clock;
    this.isShared = parts.isShared;
  }

  /** The number of holds, which are no requests in progress. */
  get size(): number {
    return this.held.size;
  }

  async take(
    batchId: string,
    caller: LlmKeyCaller,
    { nano, whole }: { nano: bigint; whole: boolean },
  ): Promise<boolean> {
    this.free(batchId);
    return this.reserve(batchId, { caller, nano, whole });
  }

  has(batchId: string): boolean {
    const held = this.held.get(batchId);
    return held !== undefined && this.clock.monotonicMs() - held.takenMs < renewMs;
  }

  outOf<Result>(batchId: string, nano: bigint, take: () => Result): Result {
    if (this.isShared) {
      const taken = this.last.then(() => this.inTurn(batchId, nano, take));
      this.last = taken.catch(() => undefined);
      return taken as Result;
    }
    const rest = this.cut(batchId, nano);
    const taken = take();
    // The ledger of one process answers in the same turn, so that no request comes in between.
    if (rest !== undefined) void this.reserve(batchId, rest);
    return taken;
  }

  free(batchId: string): void {
    const held = this.held.get(batchId);
    if (held === undefined) return;
    this.held.delete(batchId);
    this.ledger.void(held.holdId);
  }

  freeAll(): void {
    for (const batchId of [...this.held.keys()]) this.free(batchId);
  }

  private async inTurn(batchId: string, nano: bigint, take: () => unknown): Promise<unknown> {
    const rest = this.cut(batchId, nano);
    const taken = await take();
    if (rest !== undefined) await this.reserve(batchId, rest);
    return taken;
  }

  /** Frees the hold of a batch; returns what is to be held of it again. */
  private cut(batchId: string, nano: bigint) {
    const held = this.held.get(batchId);
    if (held === undefined) return undefined;
    this.free(batchId);
    const left = held.nano - nano;
    return { caller: held.caller, nano: left > 0n ? left : 0n, whole: false };
  }

  private reserve(
    batchId: string,
    { caller, nano, whole }: { caller: LlmKeyCaller; nano: bigint; whole: boolean },
  ): Promise<boolean> {
    const holdId = newId("gen", this.clock.nowMs());
    const keep = (): true => {
      this.held.set(batchId, { holdId, nano, caller, takenMs: this.clock.monotonicMs() });
      return true;
    };
    if (nano === 0n) return Promise.resolve(true);
    const reserved = this.ledger.reserve({
      holdId,
      workspaceId: caller.workspace.id,
      ceilingNano: nano,
      ...(whole && { tight: () => ({ beginNano: nano, leastNano: nano, takesShare: false }) }),
      ...spendingKeyOf(caller.key),
      parent: spendingParentOf(caller),
    });
    if (reserved instanceof Promise) return reserved.then(({ ok }) => ok && keep());
    return Promise.resolve(reserved.ok && keep());
  }
}

import { migrations } from "../../src/platform/storage/migrations/index.ts";
import type { CommitUnit } from "../../src/platform/storage/commit-queue.ts";
import { openStorage } from "../../src/platform/storage/open-storage.ts";
import type { Storage, StorageOptions } from "../../src/platform/storage/storage.ts";
import { hourMs } from "../../src/platform/kernel/clock.ts";
import { newId } from "../../src/platform/kernel/ids.ts";
import type { GatewayTables } from "../../src/platform/storage/database-epoch.ts";
import { contentInsert, type ContentTables } from "../../src/insights/archive/content-insert.ts";
import { archiveOutboxAdd, type OutboxTables } from "../../src/insights/archive/outbox-add.ts";
import {
  generationInsert,
  generationRow,
  type AttemptRecord,
  type GenerationRecord,
  type GenerationTables,
} from "../../src/insights/generation-record.ts";
import { refusedHourAdd, type RefusedTables } from "../../src/insights/refused-requests.ts";
import {
  usageAdds,
  usageAddStatements,
  type UsageTables,
} from "../../src/insights/usage/usage-rollup.ts";

/** Returns an attempt at a provider, which served unless the changes say otherwise. */
export const attemptOf = (changes: Partial<AttemptRecord> = {}): AttemptRecord => ({
  provider: "acme",
  model: "acme/large",
  upstreamModel: "large",
  status: 200,
  outcome: "served",
  reason: null,
  durationMs: 10,
  ...changes,
});

/**
 * Returns a record of a settled request; its attempts follow from its provider unless they are
 * given.
 */
export function recordOf(changes: Partial<GenerationRecord> = {}): GenerationRecord {
  const createdAtMs = changes.createdAtMs ?? Date.UTC(2026, 10, 21, 12, 30);
  const { model = "acme/large", provider = "acme" } = changes;
  return {
    id: newId("gen", createdAtMs),
    createdAtMs,
    workspaceId: "ws_own",
    keyId: "key_one",
    surface: "chat",
    requestedModel: model,
    model,
    provider,
    upstreamModel: "large",
    upstreamId: null,
    status: "completed",
    finishReason: "stop",
    streamed: false,
    promptTokens: 10,
    completionTokens: 5,
    costNanoUsd: 100n,
    latencyMs: 40,
    firstTokenMs: null,
    attempts: [attemptOf({ model, provider })],
    detail: { usage: {}, priceVersion: null, price: null, holdNanoUsd: "0" },
    ...changes,
  };
}

/** Returns the unit that a settlement commits for a record. */
export const settledUnit = (record: GenerationRecord): CommitUnit => ({
  inserts: [generationRow(record)],
  adds: usageAdds(record),
});

/**
 * Returns the n-th of a fixed series of records, spread over workspaces, keys, models, providers,
 * outcomes and three days.
 */
export function recordInSeries(
  index: number,
  createdAtMs = Date.UTC(2026, 10, 19) + (index % 71) * hourMs,
): GenerationRecord {
  const provider = `provider-${index % 4}`;
  const model = `maker/model-${index % 5}`;
  const broken = attemptOf({
    provider: "broken",
    model,
    status: 500,
    outcome: "failed",
    reason: "upstream_error",
  });
  const failed = index % 6 === 0 ? [broken] : [];
  const status = index % 11 === 0 ? "cut" : index % 13 === 0 ? "cancelled" : "completed";
  const last = attemptOf({
    provider,
    model,
    outcome: status === "cut" ? "failed" : status === "cancelled" ? "cancelled" : "served",
  });
  return recordOf({
    createdAtMs,
    provider,
    model,
    status,
    workspaceId: `ws_${index % 3}`,
    keyId: `key_${index % 7}`,
    promptTokens: index * 3,
    completionTokens: index,
    costNanoUsd: BigInt(index) * 1_000_003n,
    attempts: [...failed, last],
    detail: {
      usage: { cacheReadTokens: index % 17, reasoningTokens: index % 5 },
      priceVersion: null,
      price: null,
      holdNanoUsd: "0",
    },
  });
}

/** Tables of the records and of their counters. */
export type InsightTables = GenerationTables &
  UsageTables &
  RefusedTables &
  OutboxTables &
  ContentTables &
  GatewayTables;

/** Opens the storage of records, as the gateway does. */
export const openInsightStorage = (
  url: string,
  options: Partial<Pick<StorageOptions, "severalGateways" | "migrations" | "commitTimeoutMs">> = {},
): Promise<Storage<InsightTables>> =>
  openStorage<InsightTables>({
    url,
    durability: "process",
    migrations,
    lockTimeoutMs: 0,
    ...options,
    commitStatements: {
      // Migrations are given only for an older release, which does not keep contents.
      inserts: [generationInsert, ...(options.migrations === undefined ? [contentInsert] : [])],
      adds: [...usageAddStatements, refusedHourAdd, archiveOutboxAdd],
    },
  });

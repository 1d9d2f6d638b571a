import { dayMs, hourMs } from "../platform/kernel/clock.ts";
import type { AddStatement, CommitUnit } from "../platform/storage/commit-queue.ts";
import { type AttemptRecord, type GenerationRecord, isOutage } from "./generation-record.ts";

/**
 * Sums of requests over one bucket of time. Reasoning tokens are part of the completion, cached
 * ones of the prompt.
 */
export interface UsageSums {
  /** Requests that have a generation record. */
  requests: number;
  /** Those of them that ended without a whole answer; a client that left is none. */
  errors: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  reasoning_tokens: number;
}

interface UsageRow extends UsageSums {
  workspace_id: string;
  key_id: string;
  model: string;
  provider: string;
  cost_nano: number | bigint;
}

/** Counters that grow with each record; hours and days are counted from the epoch, in UTC. */
export interface UsageTables {
  usage_hours: UsageRow & { hour: number };
  usage_days: UsageRow & { day: number };
  /** The days again without their providers, of which there are many rows. */
  usage_key_days: Omit<UsageRow, "provider"> & { day: number };
  /** The whole service: a row an hour. */
  network_hours: { hour: number; requests: number; tokens: number };
  network_days: UsageSums & {
    day: number;
    model: string;
    provider: string;
    cost_nano: number | bigint;
    /** Tries at the provider, failed ones too. */
    attempts: number;
    /** Tries that failed by the provider's own fault. */
    failures: number;
  };
  /** What was delivered and could not be charged. */
  uncollected_days: {
    day: number;
    workspace_id: string;
    model: string;
    requests: number;
    uncollected_nano: number | bigint;
  };
}

const sumColumns = [
  "requests",
  "errors",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "cost_nano",
] as const;

/** A request that a provider was asked for: every counter of it in one row. */
export const usageAdd: AddStatement = {
  name: "usage",
  table: "usage_growths",
  keyColumns: ["workspace_id", "hour", "key_id", "model", "provider"],
  sumColumns: [...sumColumns, "attempts", "failures"],
  spreadsTo: ["usage_hours", "usage_days", "usage_key_days", "network_hours", "network_days"],
};
const usageHourAdd: AddStatement = {
  name: "usage-hour",
  table: "usage_hours",
  keyColumns: ["workspace_id", "hour", "key_id", "model", "provider"],
  sumColumns,
};
const usageDayAdd: AddStatement = {
  name: "usage-day",
  table: "usage_days",
  keyColumns: ["workspace_id", "day", "key_id", "model", "provider"],
  sumColumns,
};
const usageKeyDayAdd: AddStatement = {
  name: "usage-key-day",
  table: "usage_key_days",
  keyColumns: ["workspace_id", "day", "key_id", "model"],
  sumColumns,
};
const networkDayAdd: AddStatement = {
  name: "network-day",
  table: "network_days",
  keyColumns: ["day", "model", "provider"],
  sumColumns: [...sumColumns, "attempts", "failures"],
};
const uncollectedDayAdd: AddStatement = {
  name: "uncollected-day",
  table: "uncollected_days",
  keyColumns: ["day", "workspace_id", "model"],
  sumColumns: ["requests", "uncollected_nano"],
};

/** Every counter that a record makes grow. */
export const usageAddStatements: readonly AddStatement[] = [
  usageAdd,
  usageHourAdd,
  usageDayAdd,
  usageKeyDayAdd,
  networkDayAdd,
  uncollectedDayAdd,
];

type Adds = CommitUnit["adds"][number][];

/**
 * The counters of a request, to be committed together with its record so that they grow exactly
 * once.
 */
export function usageAdds(record: GenerationRecord): CommitUnit["adds"] {
  const { usage, uncollectedNanoUsd } = record.detail;
  const { workspaceId, keyId, model, provider, attempts, createdAtMs, status } = record;
  const sums = [
    1,
    status === "cut" || status === "failed" ? 1 : 0,
    record.promptTokens,
    record.completionTokens,
    usage["cacheReadTokens"] ?? 0,
    usage["reasoningTokens"] ?? 0,
    Number(record.costNanoUsd),
  ];
  const last = attempts.at(-1);
  if (last === undefined) return addsWithoutProvider(record, sums);
  sums.push(...triesOf(last));
  const key = [workspaceId, Math.floor(createdAtMs / hourMs), keyId, model, provider];
  const adds: Adds = [{ statement: usageAdd, key, sums }];
  if (uncollectedNanoUsd !== undefined) adds.push(uncollectedOf(record, uncollectedNanoUsd));
  for (let index = 0; index < attempts.length - 1; index += 1)
    adds.push(failedTryOf(record, attempts[index] as AttemptRecord));
  return adds;
}

const dayOf = ({ createdAtMs }: GenerationRecord): number => Math.floor(createdAtMs / dayMs);

/**
 * What reached no provider, or was answered from a cache, is no part of the figures of the whole
 * service, which are those of its providers.
 */
function addsWithoutProvider(record: GenerationRecord, sums: number[]): Adds {
  const { workspaceId, keyId, model, provider, createdAtMs, detail } = record;
  const hour = Math.floor(createdAtMs / hourMs);
  const day = dayOf(record);
  const adds: Adds = [
    { statement: usageHourAdd, key: [workspaceId, hour, keyId, model, provider], sums },
    { statement: usageDayAdd, key: [workspaceId, day, keyId, model, provider], sums },
    { statement: usageKeyDayAdd, key: [workspaceId, day, keyId, model], sums },
  ];
  if (detail.uncollectedNanoUsd !== undefined)
    adds.push(uncollectedOf(record, detail.uncollectedNanoUsd));
  return adds;
}

const uncollectedOf = (record: GenerationRecord, uncollectedNanoUsd: string): Adds[number] => ({
  statement: uncollectedDayAdd,
  key: [dayOf(record), record.workspaceId, record.model],
  sums: [1, Number(uncollectedNanoUsd)],
});

/** A try before the last one, under its own provider. */
const failedTryOf = (record: GenerationRecord, attempt: AttemptRecord): Adds[number] => ({
  statement: networkDayAdd,
  key: [dayOf(record), attempt.model, attempt.provider],
  sums: [...sumColumns.map(() => 0), ...triesOf(attempt)],
});

/**
 * Counts one attempt as attempts and failures of its provider; a client that left says nothing of
 * the provider.
 */
const triesOf = (attempt: AttemptRecord): [attempts: number, failures: number] =>
  attempt.outcome === "cancelled" ? [0, 0] : [1, isOutage(attempt) ? 1 : 0];

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
const networkHourAdd: AddStatement = {
  name: "network-hour",
  table: "network_hours",
  keyColumns: ["hour"],
  sumColumns: ["requests", "tokens"],
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
  usageHourAdd,
  usageDayAdd,
  usageKeyDayAdd,
  networkHourAdd,
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
  const { workspaceId, keyId, model, provider, attempts, promptTokens, completionTokens, status } =
    record;
  const hour = Math.floor(record.createdAtMs / hourMs);
  const day = Math.floor(record.createdAtMs / dayMs);
  const sums = [
    1,
    status === "cut" || status === "failed" ? 1 : 0,
    promptTokens,
    completionTokens,
    usage["cacheReadTokens"] ?? 0,
    usage["reasoningTokens"] ?? 0,
    Number(record.costNanoUsd),
  ];
  const adds: Adds = [
    { statement: usageHourAdd, key: [workspaceId, hour, keyId, model, provider], sums },
    { statement: usageDayAdd, key: [workspaceId, day, keyId, model, provider], sums },
    { statement: usageKeyDayAdd, key: [workspaceId, day, keyId, model], sums },
  ];
  if (uncollectedNanoUsd !== undefined) {
    adds.push({
      statement: uncollectedDayAdd,
      key: [day, workspaceId, model],
      sums: [1, Number(uncollectedNanoUsd)],
    });
  }
  // The figures of the whole service are those of its providers: what reached none, or was cached,
  // is no part of them.
  const last = attempts.at(-1);
  if (last === undefined) return adds;
  adds.push(
    { statement: networkHourAdd, key: [hour], sums: [1, promptTokens + completionTokens] },
    { statement: networkDayAdd, key: [day, model, provider], sums: [...sums, ...triesOf(last)] },
  );
  if (attempts.length > 1)
    for (const attempt of attempts.slice(0, -1)) {
      const none = sums.map(() => 0);
      adds.push({
        statement: networkDayAdd,
        key: [day, attempt.model, attempt.provider],
        sums: [...none, ...triesOf(attempt)],
      });
    }
  return adds;
}

/**
 * Counts one attempt as attempts and failures of its provider; a client that left says nothing of
 * the provider.
 */
const triesOf = (attempt: AttemptRecord): [attempts: number, failures: number] =>
  attempt.outcome === "cancelled" ? [0, 0] : [1, isOutage(attempt) ? 1 : 0];

import { dayMs, hourMs } from "../platform/lib/clock.ts";
import type { AddStatement, CommitUnit } from "../platform/storage/commit-queue.ts";
import { isOutage } from "./attempt-outcome.ts";
import type { AttemptRecord, GenerationRecord } from "./generation-record.ts";

/** Sums of requests over one bucket of time. Reasoning tokens are part of the completion, cached ones of the prompt. */
export interface UsageSums {
  /** Requests that reached a provider. */
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

/** Counters that grow with each settlement; hours and days are counted from the epoch, in UTC. */
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
}

const sumColumns = ["requests", "errors", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "cost_nano"] as const;

const usageHourAdd: AddStatement = {
  name: "usage-hour", table: "usage_hours", keyColumns: ["workspace_id", "hour", "key_id", "model", "provider"], sumColumns,
};
const usageDayAdd: AddStatement = {
  name: "usage-day", table: "usage_days", keyColumns: ["workspace_id", "day", "key_id", "model", "provider"], sumColumns,
};
const usageKeyDayAdd: AddStatement = {
  name: "usage-key-day", table: "usage_key_days", keyColumns: ["workspace_id", "day", "key_id", "model"], sumColumns,
};
const networkHourAdd: AddStatement = {
  name: "network-hour", table: "network_hours", keyColumns: ["hour"], sumColumns: ["requests", "tokens"],
};
const networkDayAdd: AddStatement = {
  name: "network-day", table: "network_days", keyColumns: ["day", "model", "provider"], sumColumns: [...sumColumns, "attempts", "failures"],
};

/** Every counter that a settlement makes grow. */
export const usageAddStatements: readonly AddStatement[] = [usageHourAdd, usageDayAdd, usageKeyDayAdd, networkHourAdd, networkDayAdd];

type Adds = CommitUnit["adds"][number][];

interface CountedRequest {
  atMs: number;
  workspaceId: string;
  keyId: string;
  model: string;
  provider: string;
  /** As `sumColumns` has them. */
  sums: number[];
  tokens: number;
  attempts: readonly AttemptRecord[];
}

/** The counters of a settled request, to be committed together with its record so that they grow exactly once. */
export function usageAdds(record: GenerationRecord): CommitUnit["adds"] {
  const { usage } = record.detail;
  const { workspaceId, keyId, model, provider, attempts, promptTokens, completionTokens } = record;
  return addsOf({
    workspaceId, keyId, model, provider, attempts,
    atMs: record.createdAtMs,
    sums: [
      1, record.status === "cut" ? 1 : 0, promptTokens, completionTokens,
      usage["cacheReadTokens"] ?? 0, usage["reasoningTokens"] ?? 0, Number(record.costNanoUsd),
    ],
    tokens: promptTokens + completionTokens,
  });
}

/** A request that no provider answered: nothing was settled, but it is counted. */
export interface FailedRequest {
  workspaceId: string;
  keyId: string;
  attempts: readonly AttemptRecord[];
}

/** The counters of a failed request, under what was tried last; none where nothing was tried. */
export function failureAdds({ attempts, ...request }: FailedRequest, atMs: number): CommitUnit["adds"] {
  const last = attempts.at(-1);
  if (last === undefined) return [];
  return addsOf({ ...request, attempts, atMs, model: last.model, provider: last.provider, sums: [1, 1, 0, 0, 0, 0, 0], tokens: 0 });
}

function addsOf({ atMs, workspaceId, keyId, model, provider, sums, tokens, attempts }: CountedRequest): Adds {
  const hour = Math.floor(atMs / hourMs);
  const day = Math.floor(atMs / dayMs);
  const last = attempts.at(-1);
  const own = last === undefined ? [0, 0] : triesOf(last);
  const adds: Adds = [
    { statement: usageHourAdd, key: [workspaceId, hour, keyId, model, provider], sums },
    { statement: usageDayAdd, key: [workspaceId, day, keyId, model, provider], sums },
    { statement: usageKeyDayAdd, key: [workspaceId, day, keyId, model], sums },
    { statement: networkHourAdd, key: [hour], sums: [1, tokens] },
    { statement: networkDayAdd, key: [day, model, provider], sums: [...sums, ...own] },
  ];
  if (attempts.length > 1) for (const attempt of attempts.slice(0, -1)) {
    const none = sums.map(() => 0);
    adds.push({ statement: networkDayAdd, key: [day, attempt.model, attempt.provider], sums: [...none, ...triesOf(attempt)] });
  }
  return adds;
}

/** Attempts and failures that one attempt stands for; a client that left says nothing of the provider. */
const triesOf = (attempt: AttemptRecord): [attempts: number, failures: number] =>
  attempt.outcome === "cancelled" ? [0, 0] : [1, isOutage(attempt) ? 1 : 0];

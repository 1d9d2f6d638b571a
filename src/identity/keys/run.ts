import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import type { LlmKey } from "./llm-key-store.ts";

/** What changes in the requests of a run once little of its limit is left. */
export interface RunDegrade {
  /** The share of the limit, from 0 to 1, below which the rule applies. */
  below: number;
  /** The model that answers instead; absent keeps the one that is asked for. */
  model?: string | undefined;
  /** The most output tokens of an answer. */
  maxTokens?: number | undefined;
  effort?: string | undefined;
}

/** How often the same request or tool call may come in a row. */
export interface RunLoopGuard {
  /** The repetitions from which on answers carry a warning. */
  warn: number;
  /** The repetitions at which the run is stopped. */
  stop: number;
}

/**
 * A run: a budget with a key of its own. Its limit is held by its owner, which is a key or another
 * run, until the run ends.
 */
export interface Run {
  /** A `run_` id, which is also the id of its key. */
  id: string;
  workspaceId: string;
  /** The id of the run, the key or the workspace whose limit holds this run's. */
  ownerId: string;
  /** The id of the key that the tree began with; the workspace where a person began it. */
  rootId: string;
  name: string;
  /** The name by which requests join it; undefined where it was created with a key of its own. */
  joinedName?: string | undefined;
  /** The keyed hash of its secret, and the secret's masked form. */
  hash: string;
  label: string;
  limitNano: bigint;
  /** The most requests of the run and of the runs in it; null means no bound. */
  maxRequests: number | null;
  /** The number of runs that it is nested in. */
  depth: number;
  /** The number of further levels that may be nested in it. */
  maxDepth: number;
  expiresAtMs: number;
  degrade?: RunDegrade | undefined;
  loopGuard?: RunLoopGuard | undefined;
  paused: boolean;
  /** Counts the changes of its limit. */
  version: number;
  creatorUserId: string;
  createdAtMs: number;
  updatedAtMs: number | null;
  endedAtMs: number | null;
  /** When the unspent rest went back to the owner; null while the run is open or ending. */
  releasedAtMs: number | null;
  /** What the run had cost with the runs in it when it was released. */
  settledNano: bigint;
  /** The list price of what it and the runs in it had used through own provider keys by then. */
  settledByokNano: bigint;
  /** The highest percentage of the limit that was reported. */
  alertedPercent: number;
}

/** The longest time that a run may last: the window over which its spending is counted. */
export const runLifetimeMsMax = 30 * dayMs;

/** Returns whether an id is that of a run. */
export const isRunId = (id: string): boolean => id.startsWith("run_");

/** Returns the id of the run that a run is nested in; undefined for one at the top. */
export const parentRunIdOf = ({ ownerId }: Run): string | undefined =>
  isRunId(ownerId) ? ownerId : undefined;

/** The reasons why a run serves no requests. */
export type RunClosure = "paused" | "expired" | "ended";

/** Returns why a run serves no requests at a wall time; undefined while it serves them. */
export function closureOf(run: Run, nowMs: number): RunClosure | undefined {
  if (run.endedAtMs !== null) return "ended";
  if (run.expiresAtMs <= nowMs) return "expired";
  return run.paused ? "paused" : undefined;
}

/**
 * Returns the key of a run, with the rights of the key that its tree began with. It counts own
 * provider keys where that key or the one above it does.
 */
export const keyOfRun = (
  run: Run,
  root?: LlmKey,
  aboveRoot?: LlmKey,
): LlmKey & Required<Pick<LlmKey, "presentLimit">> => ({
  id: run.id,
  hash: run.hash,
  workspaceId: run.workspaceId,
  name: run.name,
  label: run.label,
  createdAtMs: run.createdAtMs,
  updatedAtMs: run.updatedAtMs,
  expiresAtMs: null,
  disabled: false,
  limitNanoUsd: run.limitNano,
  limitReset: "monthly",
  presentLimit: { limitNano: run.limitNano, windowHours: runLifetimeMsMax / hourMs },
  includeByokInLimit: [root, aboveRoot].some((key) => key?.includeByokInLimit === true),
  rateLimitPerMinute: null,
  tokensPerMinute: null,
  allowedModels: root?.allowedModels ?? null,
  allowedEndpoints: root?.allowedEndpoints ?? null,
  allowedTools: root?.allowedTools ?? null,
  creatorUserId: run.creatorUserId,
});

import { z } from "zod";
import { spendingKeyOf } from "../../identity/keys/caller.ts";
import { closureOf, parentRunIdOf, type Run } from "../../identity/keys/run.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";

/** What changes below a share of the limit, as callers write and read it. */
export const degradeSchema = z
  .object({
    below: z
      .number()
      .gt(0, "must be a share above 0")
      .max(1, "must be a share of at most 1")
      .describe("Share of the limit that is left, below which the rule applies."),
    model: z.string().min(1).max(300).nullish().describe("Model that answers instead."),
    max_tokens: z.int().positive().nullish().describe("Most output tokens of an answer."),
    effort: z.string().min(1).max(40).nullish().describe("Reasoning effort, such as low."),
  })
  .describe("What changes once little of the limit is left.");

/** The repetitions at which a run warns and stops, as callers write and read them. */
export const loopGuardSchema = z
  .object({
    warn: z.int().min(2).max(1_000).default(5).describe("Repetitions from which answers warn."),
    stop: z.int().min(2).max(1_000).default(10).describe("Repetitions at which the run stops."),
  })
  .describe("How often the same prompt or tool call may come in a row.");

/** The states of a run. */
const statuses = ["active", "paused", "exhausted", "expired", "ended"] as const;

/** The record of a run. */
export const runSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("run"),
      name: z.string(),
      limit: z.number().describe("USD that the run may spend with the runs in it."),
      spent: z.number().describe("USD that it has spent with the runs in it."),
      remaining: z
        .number()
        .describe(
          "USD that its next request can use: not spent, not held, not set aside for runs in it.",
        ),
      max_requests: z.int().nullable().describe("Most requests; null without a bound."),
      requests: z.int().describe("Requests that it has made with the runs in it."),
      requests_remaining: z.int().nullable().describe("Requests left; null without a bound."),
      status: z.enum(statuses).describe("Whether it serves requests, and if not, why."),
      parent_id: z.string().nullable().describe("The run that it is nested in; null at the top."),
      key_id: z
        .string()
        .nullable()
        .describe(
          "The key that its tree began with; null where a person or a management key began it.",
        ),
      depth: z.int().describe("Number of runs that it is nested in."),
      max_depth: z.int().describe("Levels of runs that may be nested in it."),
      degrade: degradeSchema
        .nullable()
        .describe("What changes once little of the limit is left; null changes nothing."),
      loop_guard: loopGuardSchema
        .nullable()
        .describe("When repetitions warn and stop; null looks for none."),
      expires_at: z.string(),
      resume_url: z.string().describe("The page where a person adds to the run."),
      created_at: z.string(),
      updated_at: z.string().nullable(),
      ended_at: z.string().nullable(),
    })
    .meta({ id: "Run" }),
);

type RunObject = AnswerOf<typeof runSchema>;

const degradeOf = ({ degrade }: Run): RunObject["degrade"] =>
  degrade === undefined
    ? null
    : {
        below: degrade.below,
        model: degrade.model ?? null,
        max_tokens: degrade.maxTokens ?? null,
        effort: degrade.effort ?? null,
      };

function statusOf(
  run: Run,
  {
    nowMs,
    leftNano,
    requestsLeft,
  }: { nowMs: number; leftNano: bigint; requestsLeft: number | null },
): RunObject["status"] {
  const closure = closureOf(run, nowMs);
  if (closure !== undefined) return closure;
  return leftNano <= 0n || requestsLeft === 0 ? "exhausted" : "active";
}

/** Returns what is left of a run's limit, in nano-USD; 0 for one that has ended. */
async function leftOf(
  run: Run,
  { ledger, directory }: Pick<Dependencies, "ledger" | "directory">,
): Promise<bigint> {
  const key = directory.runCaller(run.id)?.key;
  if (run.endedAtMs !== null || key === undefined) return 0n;
  const figures = await ledger.allocations.figures({
    workspaceId: run.workspaceId,
    key: spendingKeyOf({ ...key, limitNanoUsd: run.limitNano }),
  });
  const left = run.limitNano - figures.spentNano - figures.heldNano - figures.allocatedNano;
  return left < 0n ? 0n : left;
}

/** Returns the records of runs. */
export async function runObjects(
  deps: Pick<Dependencies, "ledger" | "runs" | "directory" | "clock">,
  runs: readonly Run[],
): Promise<RunObject[]> {
  await deps.runs.flush();
  const totals = await deps.runs.store.totals(runs.map(({ id }) => id));
  const nowMs = deps.clock.nowMs();
  return Promise.all(
    runs.map(async (run) => {
      if (run.endedAtMs === null) await deps.runs.editor.current(run.id);
      const total = totals.get(run.id) ?? { spentNano: 0n, requests: 0 };
      const leftNano = await leftOf(run, deps);
      const { maxRequests } = run;
      const requests =
        maxRequests === null || run.endedAtMs !== null
          ? total.requests
          : await deps.runs.counts.used(run.workspaceId, { id: run.id, maxRequests });
      const requestsLeft = maxRequests === null ? null : Math.max(0, maxRequests - requests);
      return {
        id: run.id,
        object: "run" as const,
        name: run.name,
        limit: usdFromNano(run.limitNano),
        spent: usdFromNano(total.spentNano),
        remaining: usdFromNano(leftNano),
        max_requests: maxRequests,
        requests,
        requests_remaining: requestsLeft,
        status: statusOf(run, { nowMs, leftNano, requestsLeft }),
        parent_id: parentRunIdOf(run) ?? null,
        key_id: run.rootId === run.workspaceId ? null : run.rootId,
        depth: run.depth,
        max_depth: run.maxDepth,
        degrade: degradeOf(run),
        loop_guard: run.loopGuard ?? null,
        expires_at: new Date(run.expiresAtMs).toISOString(),
        resume_url: deps.runs.gate.resumeUrl(run),
        created_at: new Date(run.createdAtMs).toISOString(),
        updated_at: isoOrNull(run.updatedAtMs),
        ended_at: isoOrNull(run.endedAtMs),
      };
    }),
  );
}

/** Returns the record of one run. */
export async function runObject(
  deps: Pick<Dependencies, "ledger" | "runs" | "directory" | "clock">,
  run: Run,
): Promise<RunObject> {
  const [data] = await runObjects(deps, [run]);
  if (data === undefined) throw new Error("a run has no record");
  return data;
}

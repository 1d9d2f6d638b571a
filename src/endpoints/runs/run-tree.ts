import { z } from "zod";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { parentRunIdOf, type Run } from "../../identity/keys/run.ts";
import type { GenerationRecord } from "../../insights/generation-record.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { runObjects, runSchema } from "./run-object.ts";

/** The most runs and requests that a tree shows. */
const runsMax = 500;
const requestsMax = 500;

const requestSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      run_id: z.string().describe("The run that made the request."),
      model: z.string(),
      provider: z.string(),
      surface: z.string().describe("Kind of inference, such as chat."),
      status: z.string(),
      cost: z.number().describe("USD."),
      started_at: z.string(),
      duration_ms: z.number().describe("Milliseconds until the answer was complete."),
      first_token_ms: z.number().nullable(),
      prompt_tokens: z.int(),
      completion_tokens: z.int(),
    })
    .meta({ id: "RunRequest" }),
);

/** A run with the runs in it, each of the same form. */
interface RunNode extends AnswerOf<typeof runSchema> {
  runs: RunNode[];
}

const runNodeSchema = lazily(() => {
  const node: z.ZodType<RunNode> = runSchema()
    .extend({ runs: z.array(z.lazy(() => node)).describe("The runs in it.") })
    .meta({ id: "RunNode" });
  return node;
});

/** The record of a run as a tree. */
export const runTreeSchema = lazily(() =>
  runSchema().extend({
    total: z
      .object({ spent: z.number(), requests: z.int() })
      .describe("The sums of the run and of the runs in it."),
    runs: z.array(runNodeSchema()).describe("The runs in it, with the runs in those."),
    generations: z
      .array(requestSchema())
      .describe(`The newest ${requestsMax} requests of the tree, oldest first.`),
  }),
);

const requestOf = (record: GenerationRecord): AnswerOf<typeof requestSchema> => ({
  id: record.id,
  run_id: record.keyId,
  model: record.model,
  provider: record.provider,
  surface: record.surface,
  status: record.status,
  cost: usdFromNano(record.costNanoUsd),
  started_at: new Date(record.createdAtMs).toISOString(),
  duration_ms: record.latencyMs,
  first_token_ms: record.firstTokenMs,
  prompt_tokens: record.promptTokens,
  completion_tokens: record.completionTokens,
});

/** Returns a run with the runs in it and their requests. */
export async function runTree(
  deps: Pick<Dependencies, "ledger" | "runs" | "directory" | "insights" | "clock">,
  run: Run,
) {
  const { runs, insights, clock } = deps;
  const tree = await runs.store.tree(run.id, runsMax);
  const records = await runObjects(deps, tree);
  const { records: requests } = await insights.search.page({
    workspaceId: run.workspaceId,
    fromMs: run.createdAtMs - dayMs,
    toMs: clock.nowMs() + dayMs,
    filter: { keyIds: tree.map(({ id }) => id) },
    limit: requestsMax,
  });
  const nodes = new Map(
    records.map((record): [string, RunNode] => [record.id, { ...record, runs: [] }]),
  );
  for (const each of tree) {
    const node = nodes.get(each.id);
    const parent = nodes.get(parentRunIdOf(each) ?? "");
    if (node !== undefined && each.id !== run.id) parent?.runs.push(node);
  }
  const top = nodes.get(run.id);
  return {
    ...top,
    total: { spent: top?.spent ?? 0, requests: top?.requests ?? 0 },
    generations: requests.toReversed().map(requestOf),
  };
}

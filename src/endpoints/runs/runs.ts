import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { NewRun, RunOpener } from "../../billing/runs/run-editor.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { AccountCaller, LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { KeyConnection } from "../../identity/keys/llm-key-store.ts";
import type { Run } from "../../identity/keys/run.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { nanoFromUsd, usdFromNano } from "../../platform/kernel/money.ts";
import { accountBodyBytesMax, nameField, neverCached } from "../account/account-fields.ts";
import { cutPage, placeFields, unknownCursor } from "../account/list-pages.ts";
import type { Dependencies } from "../dependencies.ts";
import { assertGrantsInference } from "../keys/child-keys.ts";
import { assertBoundToNoTeam } from "../keys/key-team.ts";
import { limitField } from "../keys/llm-key-object.ts";
import { degradeSchema, loopGuardSchema, runObject, runObjects, runSchema } from "./run-object.ts";
import { runTree, runTreeSchema } from "./run-tree.ts";

const shared = {
  base: "api",
  counting: "at-door",
  tag: "Runs",
  encodeError: encodeContractError,
} as const;
const reading = {
  access: { llmKey: true, managementScope: "read:llm-keys", session: true },
} as const;
const writing = {
  access: { llmKey: true, managementScope: "write:llm-keys", session: true },
  bodyBytesMax: accountBodyBytesMax,
} as const;

const limitSchema = limitField
  .refine((limit) => (nanoFromUsd(limit) ?? 0n) > 0n, "must be above 0")
  .describe("USD that the run may spend.");

const newRunSchema = z.object({
  name: nameField,
  limit: limitSchema,
  max_requests: z.int().positive().nullish().describe("Most requests, with those of runs in it."),
  max_depth: z
    .int()
    .min(0)
    .max(16)
    .nullish()
    .describe("Levels of runs that may be nested in it. Default: 5, or one less than around it."),
  expires_in: z
    .number()
    .positive()
    .max(2_592_000)
    .nullish()
    .describe("Seconds until the run ends, at most 30 days, which is the default."),
  degrade: degradeSchema.nullish().describe("What changes once little of the limit is left."),
  loop_guard: loopGuardSchema
    .nullish()
    .describe("How often the same prompt or tool call may come in a row."),
});

const newRunOf = (body: z.infer<typeof newRunSchema>): NewRun => ({
  name: body.name,
  limitNano: nanoFromUsd(body.limit) ?? 0n,
  maxRequests: body.max_requests ?? null,
  maxDepth: body.max_depth ?? undefined,
  expiresInMs: typeof body.expires_in === "number" ? Math.ceil(body.expires_in * 1000) : undefined,
  degrade: body.degrade
    ? {
        below: body.degrade.below,
        model: body.degrade.model ?? undefined,
        maxTokens: body.degrade.max_tokens ?? undefined,
        effort: body.degrade.effort ?? undefined,
      }
    : undefined,
  loopGuard: body.loop_guard ?? undefined,
});

const answerSchema = () => z.object({ data: runSchema() });

/**
 * Returns the run of the path, where the caller may see it: an LLM key sees the trees that it began,
 * the key of a run its own. Throws `not_found`.
 */
async function runOf(
  context: RequestContext<unknown, LlmKeyCaller | AccountCaller>,
  { runs, directory }: Pick<Dependencies, "runs" | "directory">,
): Promise<Run> {
  const { caller } = context;
  const id = context.param("id");
  const self = id === "self" && caller.kind === "llm-key" ? caller.run?.id : undefined;
  const run = await runs.editor.find({ workspaceId: caller.workspace.id, id: self ?? id });
  const own = caller.kind === "llm-key" || caller.kind === "connection" ? caller.key.id : undefined;
  if (own === undefined) return run;
  const chain = await runs.editor.chainOf(run);
  const rootParent = directory.llmKeyById(run.rootId)?.parentKeyId;
  if (run.rootId === own || rootParent === own || chain.some(({ id }) => id === own)) return run;
  throw new GatewayError("not_found", "There is no run with this id. GET /runs lists them.");
}

/** Returns the connected app that calls; undefined for other callers. */
function connectionOf(caller: RunOpener): KeyConnection | undefined {
  if (caller.kind === "connection") return caller.connection;
  return caller.kind === "llm-key" ? caller.key.connection : undefined;
}

/** Opens a run. The secret of its key is shown only in this answer. */
export const createRun = defineEndpoint({
  ...shared,
  ...writing,
  method: "POST",
  idempotent: true,
  path: "/runs",
  summary: "Open a run.",
  description:
    "A run is a budget with a key of its own. Its limit is carved out of the calling key's limit, or of the run's whose key calls, " +
    "and what is left goes back when the run ends. At its end requests are refused with 402 run_exhausted, whose " +
    "metadata.resume_url is a page where a person adds to the run. A limit above what is left is refused with 402 " +
    "insufficient_balance.",
  body: newRunSchema,
  response: () => z.object({ key: z.string(), data: runSchema() }),
  async handle(
    context,
    deps: Pick<Dependencies, "ledger" | "runs" | "directory" | "clock" | "teamStore">,
  ) {
    const caller: RunOpener = context.caller;
    if (caller.kind === "session") await assertBoundToNoTeam(caller, deps);
    const connection = connectionOf(caller);
    if (connection !== undefined) assertGrantsInference(connection);
    const { run, secret } = await deps.runs.editor.open(caller, newRunOf(context.body));
    context.changed = run.id;
    return context.json(
      { key: secret, data: await runObject(deps, run) },
      { headers: neverCached },
    );
  },
});

const pageLimit = z.coerce.number().int().min(1).max(200).default(50);
const listQuery = z.object({
  limit: pageLimit.describe("Most runs of a page, from 1 to 200."),
  cursor: z.string().max(100).optional().describe("The `next_cursor` of the page before."),
  parent_id: z
    .string()
    .max(100)
    .optional()
    .describe("The run or key whose direct runs are listed."),
});
const documentedQuery = z.object({
  limit: z.string().optional().describe("Most runs of a page, from 1 to 200. Default: 50."),
  cursor: z.string().optional().describe("The `next_cursor` of the page before."),
  parent_id: z.string().optional().describe("The run or key whose direct runs are listed."),
});

export const listRuns = defineEndpoint({
  ...shared,
  ...reading,
  method: "GET",
  path: "/runs",
  summary: "List runs, newest first.",
  description:
    "An LLM key lists the runs that began with it; the key of a run lists the run and those in it.",
  query: documentedQuery,
  response: () =>
    z.object({ object: z.literal("list"), data: z.array(runSchema()), ...placeFields() }),
  async handle(context, deps: Pick<Dependencies, "ledger" | "runs" | "directory" | "clock">) {
    const {
      limit,
      cursor,
      parent_id: ownerId,
    } = checkBody(listQuery, Object.fromEntries(context.query));
    if (cursor !== undefined && !/^run_[0-9a-f]{32}$/.test(cursor)) throw unknownCursor();
    const { caller } = context;
    const isKey = caller.kind === "llm-key" || caller.kind === "connection";
    const own = caller.kind === "llm-key" ? caller.run : undefined;
    const within =
      own === undefined ? { rootId: isKey ? caller.key.id : undefined } : { withinId: own.id };
    const query = { workspaceId: caller.workspace.id, ownerId, ...within };
    const found = await deps.runs.store.list({ ...query, beforeId: cursor, limit: limit + 1 });
    const { data, place } = cutPage(found, limit, ({ id }) => id);
    return context.json({ object: "list", data: await runObjects(deps, data), ...place });
  },
});

export const getRun = defineEndpoint({
  ...shared,
  ...reading,
  method: "GET",
  path: "/runs/:id",
  summary: "Show a run with its tree.",
  description:
    "Returns the run with the runs in it, and its newest requests with what each cost and how long it took. With the key of a run, " +
    "the id `self` is that run.",
  response: () => z.object({ data: runTreeSchema() }),
  async handle(
    context,
    deps: Pick<Dependencies, "ledger" | "runs" | "directory" | "insights" | "clock">,
  ) {
    const run = await runOf(context, deps);
    return context.json({ data: await runTree(deps, run) });
  },
});

const changesSchema = z.object({
  limit: limitSchema.optional(),
  status: z
    .enum(["active", "paused", "ended"], "must be active, paused or ended")
    .optional()
    .describe("`paused` refuses requests until it is `active` again; `ended` is final."),
});

/** Throws unless the caller may give a run more: not with its own key. */
function assertMayAdd({ caller }: RequestContext<unknown, LlmKeyCaller | AccountCaller>, run: Run) {
  if (caller.kind !== "llm-key" || caller.key.id !== run.id) return;
  throw new GatewayError(
    "forbidden",
    "A run cannot change itself. Ask with the key that opened it, or open metadata.resume_url.",
  );
}

/** Throws where a key would raise the limit of a run beyond the `run_limit` of the key that opened it. */
function assertWithinRunLimit(
  { caller }: RequestContext<unknown, LlmKeyCaller | AccountCaller>,
  { ownerId }: Run,
  { limitNano, directory }: { limitNano: bigint } & Pick<Dependencies, "directory">,
): void {
  if (caller.kind !== "llm-key" && caller.kind !== "connection") return;
  const mostNano = directory.llmKeyById(ownerId)?.runLimitNano ?? null;
  if (mostNano === null || limitNano <= mostNano) return;
  throw badField(
    "limit",
    `must stay within the run_limit of the key that opened it: ${usdFromNano(mostNano)} USD`,
  );
}

/** Changes a run: its limit, or whether it serves requests. */
export const changeRun = defineEndpoint({
  ...shared,
  ...writing,
  method: "PATCH",
  path: "/runs/:id",
  summary: "Change the limit of a run, pause or end it.",
  description:
    "A higher limit is carved out of what the run is in, atomically; a lower one gives back. Ending a run ends the runs in it; " +
    "what they left goes back once their last request is settled.",
  body: changesSchema,
  response: answerSchema,
  async handle(context, deps: Pick<Dependencies, "ledger" | "runs" | "directory" | "clock">) {
    const { limit, status } = context.body;
    let run = await runOf(context, deps);
    if (status !== "ended" || limit !== undefined) assertMayAdd(context, run);
    const { editor } = deps.runs;
    context.changed = run.id;
    if (limit !== undefined) {
      const limitNano = nanoFromUsd(limit) ?? 0n;
      assertWithinRunLimit(context, run, { limitNano, directory: deps.directory });
      run = await editor.setLimit(run, limitNano);
    }
    if (status === "ended") run = await editor.end(run);
    else if (status !== undefined) run = await editor.setPaused(run, status === "paused");
    return context.json({ data: await runObject(deps, run) });
  },
});

import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { BatchRecipients } from "../../batches/batch-watchers.ts";
import type { Batch } from "../../batches/batch.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { KnownCaller, LlmKeyCaller } from "../../identity/keys/caller.ts";
import { hourMs } from "../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { accountBodyBytesMax, workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { fileIdOf, noFile } from "../files/file-dialect.ts";
import { batchInputBytesMax, fileAccess } from "../files/files.ts";
import { integerField, refuseRetention, expirySchema } from "../files/receive-form.ts";
import { batchIdOf, batchOf, batchSchema, noBatch, openaiBatch } from "./batch-objects.ts";

/** The endpoints that lines may name: those that answer whole. */
const lineEndpoints = [
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/responses",
  "/v1/messages",
  "/v1/embeddings",
  "/v1/moderations",
  "/v1/rerank",
  "/v1/images/generations",
  "/v1/images/edits",
] as const;

/** The same as Azure's clients name them. */
const azureLineEndpoints = [
  "/chat/completions",
  "/completions",
  "/responses",
  "/embeddings",
] as const;

type BatchDependencies = Pick<
  Dependencies,
  "batches" | "clock" | "files" | "inference" | "security"
>;
type BatchContext = RequestContext<unknown, KnownCaller>;

/** Who is notified of the end of a batch, and of its pause where no money is left. */
export const notifySchema = z
  .object({
    webhook_url: z.url().max(2_000).optional(),
    emails: z.array(z.email()).max(10).optional(),
  })
  .describe("Who is notified of the end of the batch, and of its first pause without money.");

/** Returns whom a body asks to notify. Throws `GatewayError` for whom nothing can be sent to. */
export async function recipientsOf(
  notify: z.output<typeof notifySchema> | undefined,
  workspaceId: string,
  { batches }: Pick<Dependencies, "batches">,
): Promise<BatchRecipients> {
  const recipients = { emails: notify?.emails ?? [], webhookUrl: notify?.webhook_url ?? null };
  await batches.watchers.assertReachable(workspaceId, recipients);
  return recipients;
}

const bodySchema = z.object({
  input_file_id: z.string(),
  endpoint: z.enum([...lineEndpoints, ...azureLineEndpoints]),
  completion_window: z.literal("24h"),
  metadata: z
    .record(z.string().max(64), z.string().max(512))
    .refine((pairs) => Object.keys(pairs).length <= 16, "must have at most 16 entries")
    .nullable()
    .optional(),
  notify: notifySchema.optional(),
  output_expires_after: expirySchema.optional(),
});

/** Creates a batch. */
export const createBatch = defineEndpoint<
  BatchDependencies,
  z.output<typeof bodySchema>,
  { llmKey: true }
>({
  method: "POST",
  path: "/batches",
  base: "api",
  access: { llmKey: true },
  counting: "at-door",
  bodyBytesMax: accountBodyBytesMax,
  idempotent: true,
  tag: "Batches",
  summary: "Create a batch.",
  description:
    "The input is a file with the purpose batch: one request a line, each with `custom_id`, `method`, `url` and `body`. Every line " +
    "runs as an ordinary request of the key that creates the batch, with the key's limits and rights at that time, and is charged " +
    "once. Any model, preset and provider object may be named. If no money is left, the batch waits until its window ends. " +
    "`notify` names a webhook and people of the workspace who are notified of its end, and of such a pause.",
  body: bodySchema,
  response: batchSchema,
  encodeError: encodeContractError,
  async handle(context, dependencies) {
    refuseRetention(context, dependencies);
    const { files } = dependencies;
    const { body } = context;
    const { key, workspace } = context.caller as LlmKeyCaller;
    const id = fileIdOf(body.input_file_id);
    const file = id === undefined ? undefined : await files.store.find(workspace.id, id);
    if (file === undefined) throw noFile(body.input_file_id, "input_file_id");
    if (file.purpose !== "batch")
      throw badField(
        "input_file_id",
        `must be a file with the purpose batch, got ${file.purpose}.`,
      );
    if (file.object.bytes > batchInputBytesMax)
      throw badField("input_file_id", `must have at most ${batchInputBytesMax} bytes.`);
    const recipients = await recipientsOf(body.notify, workspace.id, dependencies);
    if (!(await files.store.hold(file.id))) throw noFile(body.input_file_id, "input_file_id");
    const asked = {
      workspaceId: workspace.id,
      keyId: key.id,
      form: "openai",
      endpoint: body.endpoint.startsWith("/v1/") ? body.endpoint : `/v1${body.endpoint}`,
      completionWindow: body.completion_window,
      windowMs: 24 * hourMs,
      inputFileId: file.id,
      outputExpiresSeconds: body.output_expires_after?.seconds ?? null,
      metadata: body.metadata ?? null,
    } as const;
    const { batch, webhookSecret } = await heldUntilMade(dependencies, asked, recipients);
    return context.json({ ...openaiBatch(batch, undefined), ...secretOf(webhookSecret) });
  },
});

/** Creates a batch of a held input, and ends the hold where that fails. */
export async function heldUntilMade(
  { batches, files }: Pick<Dependencies, "batches" | "files">,
  ...[asked, recipients]: Parameters<Dependencies["batches"]["create"]>
): ReturnType<Dependencies["batches"]["create"]> {
  try {
    return await batches.create(asked, recipients);
  } catch (error) {
    await files.store.release(asked.inputFileId);
    throw error;
  }
}

/** Returns the member with the secret of a webhook, which is shown once. */
export const secretOf = (secret: string | null) =>
  secret === null ? {} : { webhook_secret: secret };

/** Returns the form of the batches that a caller sees: people who are signed in see all. */
const formOf = ({ caller }: BatchContext): "openai" | undefined =>
  caller.kind === "session" ? undefined : "openai";

/**
 * Returns the batch behind which a page begins. Throws `not_found` for one that the workspace does
 * not have: batches of this form are never deleted.
 */
async function edgeOf(
  context: BatchContext,
  batches: Dependencies["batches"],
): Promise<string | undefined> {
  const shown = context.query.get("after");
  if (shown === null || shown === "") return undefined;
  const id = batchIdOf(shown);
  const batch = id && (await batches.store.find(workspaceOf(context).id, id, formOf(context)));
  if (batch === undefined || batch === "") throw noBatch(shown, "after");
  return batch.id;
}

/** Lists the batches of the workspace. */
export const listBatches = defineEndpoint<BatchDependencies, undefined, typeof fileAccess>({
  method: "GET",
  path: "/batches",
  base: "api",
  access: fileAccess,
  counting: "at-door",
  tag: "Batches",
  summary: "List batches.",
  description: "Newest first. People who are signed in also see those of Anthropic's form.",
  query: z.object({ after: z.string().optional(), limit: z.string().optional() }),
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(batchSchema()),
      first_id: z.string().nullable(),
      last_id: z.string().nullable(),
      has_more: z.boolean(),
    }),
  encodeError: encodeContractError,
  async handle(context, { batches }) {
    const { query } = context;
    const page = await batches.store.list({
      workspaceId: workspaceOf(context).id,
      form: formOf(context),
      limit:
        integerField(query.get("limit") ?? undefined, {
          param: "limit",
          minimum: 1,
          maximum: 100,
        }) ?? 20,
      after: await edgeOf(context, batches),
    });
    const facts = await batches.factsOf(page.batches);
    const data = page.batches.map((batch) => openaiBatch(batch, facts.get(batch.id)));
    return context.json({
      object: "list",
      data,
      first_id: data[0]?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
      has_more: page.hasMore,
    });
  },
});

const shownBatch = async (batch: Batch, { batches }: BatchDependencies) =>
  openaiBatch(batch, (await batches.factsOf([batch])).get(batch.id));

/** Returns a batch. */
export const getBatch = defineEndpoint<BatchDependencies, undefined, typeof fileAccess>({
  method: "GET",
  path: "/batches/:id",
  base: "api",
  access: fileAccess,
  counting: "at-door",
  tag: "Batches",
  summary: "Show a batch.",
  response: batchSchema,
  encodeError: encodeContractError,
  async handle(context, dependencies) {
    return context.json(
      await shownBatch(
        await batchOf(context, { ...dependencies, form: formOf(context) }),
        dependencies,
      ),
    );
  },
});

/** Cancels a batch. */
export const cancelBatch = defineEndpoint<BatchDependencies, undefined, typeof fileAccess>({
  method: "POST",
  path: "/batches/:id/cancel",
  base: "api",
  access: fileAccess,
  counting: "at-door",
  idempotent: true,
  unaudited: true,
  tag: "Batches",
  summary: "Cancel a batch.",
  description:
    "Requests that are in progress are completed. The results so far are kept, and what was not run is in the error file.",
  response: batchSchema,
  encodeError: encodeContractError,
  async handle(context, dependencies) {
    const batch = await cancel(
      await batchOf(context, { ...dependencies, form: formOf(context) }),
      dependencies,
    );
    return context.json(await shownBatch(batch, dependencies));
  },
});

/** Cancels a batch in either form. Throws `conflict` for one that has ended. */
export async function cancel(
  batch: Batch,
  { batches, clock }: Pick<Dependencies, "batches" | "clock">,
): Promise<Batch> {
  const cancellingAtMs = clock.nowMs();
  await batches.store.change(batch.id, ["validating", "in_progress"], {
    status: "cancelling",
    cancellingAtMs,
  });
  const changed = (await batches.store.get(batch.id)) ?? batch;
  if (changed.status !== "cancelling" && changed.status !== "cancelled")
    throw new GatewayError("conflict", `Cannot cancel a batch with status '${changed.status}'.`, {
      param: "batch_id",
    });
  batches.runner.wake();
  return changed;
}

import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { answerOnceFor } from "../../access/idempotent-answers.ts";
import { shownBatchId } from "../../batches/batch.ts";
import { linesMax } from "../../batches/input-reader.ts";
import type { Reply } from "../../http/reply.ts";
import type { KnownCaller, LlmKeyCaller } from "../../identity/keys/caller.ts";
import { anthropicMessages } from "../../inference/dialects/anthropic-messages/index.ts";
import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { contentResponse, rangeAnswers } from "../files/content-response.ts";
import { quotaExceeded } from "../files/file-dialect.ts";
import { fileAccess } from "../files/files.ts";
import { integerField, refuseRetention } from "../files/receive-form.ts";
import { cancel, heldUntilMade, notifySchema, recipientsOf, secretOf } from "./batches.ts";
import { batchIdOf, batchOf, messageBatch, messageBatchSchema } from "./batch-objects.ts";
import { receiveRequests, type ReceivedRequests, requestsBytesMax } from "./receive-requests.ts";

/** How long the results of a batch are kept (Anthropic: 29 days). */
const resultDays = 29;

type BatchDependencies = Pick<
  Dependencies,
  "batches" | "files" | "idempotentAnswers" | "inference" | "security" | "publicUrl" | "clock"
>;
type BatchContext = RequestContext<unknown, KnownCaller>;

const requestsSchema = z.object({
  requests: z
    .array(
      z.object({
        custom_id: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
        params: z.record(z.string(), z.unknown()),
      }),
    )
    .min(1)
    .max(linesMax.anthropic),
  notify: notifySchema.optional(),
});

/** Makes the stored requests the input of a batch, which is no file of the workspace's list. */
async function keepInput(
  { object, quotaBytes }: ReceivedRequests,
  { key, workspace }: LlmKeyCaller,
  { files }: BatchDependencies,
): Promise<string> {
  const facts = {
    keyId: key.id,
    filename: "requests.jsonl",
    mimeType: "application/jsonl",
    purpose: "batch" as const,
    isOutput: false,
    expiresAtMs: null,
  };
  const file = await files.store.add(object, facts, { bytesMax: quotaBytes, isHeldOnly: true });
  if (file === undefined)
    throw quotaExceeded({ usedBytes: await files.store.bytesOf(workspace.id), quotaBytes });
  return file.id;
}

/** Creates the batch of stored requests. Throws `GatewayError`. */
async function makeBatch(
  context: BatchContext,
  received: ReceivedRequests,
  dependencies: BatchDependencies,
): Promise<Reply> {
  const { workspace, key } = context.caller as LlmKeyCaller;
  const notify = notifySchema.optional().safeParse(received.rest["notify"]);
  if (!notify.success) throw badField("notify", "must have webhook_url or emails.");
  const recipients = await recipientsOf(notify.data, workspace.id, dependencies);
  const inputFileId = await keepInput(received, context.caller as LlmKeyCaller, dependencies);
  const asked = {
    workspaceId: workspace.id,
    keyId: key.id,
    form: "anthropic",
    endpoint: "/v1/messages",
    completionWindow: "24h",
    windowMs: 24 * hourMs,
    inputFileId,
    total: received.count,
    outputExpiresSeconds: (resultDays * dayMs) / 1_000,
    metadata: null,
  } as const;
  const { batch, webhookSecret } = await heldUntilMade(dependencies, asked, recipients);
  return context.json({
    ...messageBatch(batch, dependencies.publicUrl()),
    ...secretOf(webhookSecret),
  });
}

/** Creates a batch of Messages requests. */
export const createMessageBatch = defineEndpoint<BatchDependencies, undefined, { llmKey: true }>({
  method: "POST",
  path: "/messages/batches",
  base: "api",
  access: { llmKey: true },
  counting: "at-door",
  bodyBytesMax: requestsBytesMax,
  tag: "Batches",
  summary: "Create a batch of messages.",
  description:
    "Anthropic's form: each request with a `custom_id` and the `params` of a message, for any model. Each runs as an ordinary request of " +
    "the key that creates the batch, and is charged once. Parameters are checked when a request runs.",
  headers: z.object({
    "Idempotency-Key": z
      .string()
      .max(255)
      .optional()
      .describe("A repetition with the same key gets the first answer, and makes no second batch."),
  }),
  rawBody: requestsSchema,
  response: messageBatchSchema,
  encodeError: anthropicMessages.encodeError,
  async handle(context, dependencies) {
    refuseRetention(context, dependencies);
    const { files, idempotentAnswers } = dependencies;
    const received = await receiveRequests(context, files);
    let isMade = false;
    try {
      return await answerOnceFor(
        idempotentAnswers,
        { context, bodyText: received.fingerprint },
        async () => {
          const answer = await makeBatch(context, received, dependencies);
          isMade = true;
          return answer;
        },
      );
    } finally {
      if (!isMade) await files.objects.discard(received.object.name);
    }
  },
});

/**
 * Returns the batch at which a page begins or ends, which may have been deleted since the page before
 * was read. Throws `bad_request` for a text that is no id.
 */
const edgeOf = (query: URLSearchParams, param: string): string | undefined => {
  const shown = query.get(param);
  if (shown === null || shown === "") return undefined;
  const id = batchIdOf(shown);
  if (id === undefined || !/^batch_[0-9a-f]{32}$/.test(id))
    throw badField(param, "names no batch.");
  return id;
};

/** Lists the batches of messages. */
export const listMessageBatches = defineEndpoint<BatchDependencies, undefined, typeof fileAccess>({
  method: "GET",
  path: "/messages/batches",
  base: "api",
  access: fileAccess,
  counting: "at-door",
  tag: "Batches",
  summary: "List batches of messages.",
  query: z.object({
    limit: z.string().optional(),
    after_id: z.string().optional(),
    before_id: z.string().optional(),
    beta: z.string().optional(),
  }),
  response: () =>
    z.object({
      data: z.array(messageBatchSchema()),
      first_id: z.string().nullable(),
      last_id: z.string().nullable(),
      has_more: z.boolean(),
    }),
  encodeError: anthropicMessages.encodeError,
  async handle(context, { batches, publicUrl }) {
    const { query } = context;
    const limit = query.get("limit") ?? undefined;
    const page = await batches.store.list({
      workspaceId: workspaceOf(context).id,
      form: "anthropic",
      limit: integerField(limit, { param: "limit", minimum: 1, maximum: 1_000 }) ?? 20,
      after: edgeOf(query, "after_id"),
      before: edgeOf(query, "before_id"),
    });
    const data = page.batches.map((batch) => messageBatch(batch, publicUrl()));
    return context.json({
      data,
      first_id: data[0]?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
      has_more: page.hasMore,
    });
  },
});

const oneBatch = {
  base: "api",
  access: fileAccess,
  counting: "at-door",
  tag: "Batches",
  query: z.object({ beta: z.string().optional() }),
  encodeError: anthropicMessages.encodeError,
} as const;

/** Returns a batch of messages. */
export const getMessageBatch = defineEndpoint<BatchDependencies, undefined, typeof fileAccess>({
  ...oneBatch,
  method: "GET",
  path: "/messages/batches/:id",
  summary: "Show a batch of messages.",
  response: messageBatchSchema,
  async handle(context, dependencies) {
    const batch = await batchOf(context, { ...dependencies, form: "anthropic" });
    return context.json(messageBatch(batch, dependencies.publicUrl()));
  },
});

/** Cancels a batch of messages. */
export const cancelMessageBatch = defineEndpoint<BatchDependencies, undefined, typeof fileAccess>({
  ...oneBatch,
  method: "POST",
  path: "/messages/batches/:id/cancel",
  idempotent: true,
  unaudited: true,
  summary: "Cancel a batch of messages.",
  response: messageBatchSchema,
  async handle(context, dependencies) {
    const batch = await cancel(
      await batchOf(context, { ...dependencies, form: "anthropic" }),
      dependencies,
    );
    return context.json(messageBatch(batch, dependencies.publicUrl()));
  },
});

/** Deletes a batch of messages that has ended, with its results. */
export const deleteMessageBatch = defineEndpoint<BatchDependencies, undefined, typeof fileAccess>({
  ...oneBatch,
  method: "DELETE",
  path: "/messages/batches/:id",
  summary: "Delete a batch of messages.",
  description: "Only batches that have ended can be deleted.",
  response: () => z.object({ id: z.string(), type: z.literal("message_batch_deleted") }),
  async handle(context, dependencies) {
    const batch = await batchOf(context, { ...dependencies, form: "anthropic" });
    if (!(await dependencies.batches.store.delete(batch.id)))
      throw new GatewayError(
        "bad_request",
        "This batch has not ended. Cancel it, and delete it when it has.",
        { param: "message_batch_id" },
      );
    if (batch.outputFileId !== null)
      await dependencies.files.store.delete(batch.workspaceId, batch.outputFileId);
    return context.json({ id: shownBatchId(batch), type: "message_batch_deleted" });
  },
});

/** Returns the results of a batch of messages. */
export const messageBatchResults = defineEndpoint<BatchDependencies, undefined, typeof fileAccess>({
  ...oneBatch,
  method: "GET",
  path: "/messages/batches/:id/results",
  summary: "Read the results of a batch of messages.",
  description: "One result a line, in any order, once the batch has ended.",
  otherResponseTypes: ["application/octet-stream"],
  furtherAnswers: rangeAnswers,
  async handle(context, { batches, files }) {
    const batch = await batchOf(context, { batches, form: "anthropic" });
    if (batch.endedAtMs === null)
      throw new GatewayError("bad_request", "This batch has not ended, so it has no results yet.", {
        param: "message_batch_id",
      });
    const file =
      batch.outputFileId && (await files.store.find(batch.workspaceId, batch.outputFileId));
    if (file === undefined || file === null || file === "")
      throw new GatewayError("not_found", "The results of this batch are not kept any more.");
    return contentResponse(context, { store: files.store, file });
  },
});

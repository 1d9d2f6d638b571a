import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { Batch } from "../../batches/batch.ts";
import { linesMax } from "../../batches/read-input.ts";
import { parseJsonObject, readJsonText } from "../../http/read-body.ts";
import type { KnownCaller, LlmKeyCaller } from "../../identity/keys/caller.ts";
import { anthropicMessages } from "../../inference/dialects/anthropic-messages/index.ts";
import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { contentResponse } from "../files/content-response.ts";
import { quotaExceeded } from "../files/file-dialect.ts";
import { fileAccess } from "../files/files.ts";
import { badField, integerField, refuseRetention } from "../files/receive-form.ts";
import { cancel, notifySchema, recipientsOf, secretOf } from "./batches.ts";
import {
  batchIdOf,
  messageBatch,
  messageBatchId,
  messageBatchSchema,
  noBatch,
} from "./batch-objects.ts";

/** The most bytes of the requests of a batch, which come in one body. */
const bodyBytesMax = 256 * 1024 * 1024;

/** How long the results of a batch are kept (Anthropic: 29 days). */
const resultDays = 29;

type BatchDependencies = Pick<
  Dependencies,
  "batches" | "files" | "inference" | "security" | "publicUrl" | "clock"
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

/** Returns the requests of a body as the lines of an input. Throws `bad_request`. */
function inputOf({ requests }: Record<string, unknown>): string {
  if (!Array.isArray(requests) || requests.length === 0)
    throw badField("requests", "is required: at least one request.");
  if (requests.length > linesMax.anthropic)
    throw badField("requests", `must have at most ${linesMax.anthropic} entries.`);
  const ids = new Set<string>();
  return requests
    .map((request: unknown, index) => {
      const { custom_id: customId, params } = Object(request) as Record<string, unknown>;
      const at = `requests[${index}]`;
      if (typeof customId !== "string" || !/^[a-zA-Z0-9_-]{1,64}$/.test(customId))
        throw badField(`${at}.custom_id`, "must have 1 to 64 letters, digits, _ and -.");
      if (ids.has(customId)) throw badField(`${at}.custom_id`, "is that of another request.");
      ids.add(customId);
      if (typeof params !== "object" || params === null || Array.isArray(params))
        throw badField(`${at}.params`, "must be an object.");
      // Lines are answered whole, as Anthropic's are.
      const { stream: _, ...body } = params as Record<string, unknown>;
      return JSON.stringify({ custom_id: customId, method: "POST", url: "/v1/messages", body });
    })
    .join("\n");
}

/** Stores the input of a batch, which is no file of the workspace's list. */
async function storeInput(
  text: string,
  { key, workspace }: LlmKeyCaller,
  { files }: BatchDependencies,
): Promise<string> {
  const quotaBytes = files.quotaBytesOf(workspace.plan);
  const full = async (): Promise<GatewayError> =>
    quotaExceeded({ usedBytes: await files.store.bytesOf(workspace.id), quotaBytes });
  const bytes = Buffer.from(text);
  const object = await files.objects.write(
    workspace.id,
    (async function* () {
      for (let at = 0; at < bytes.byteLength; at += 65_536) yield bytes.subarray(at, at + 65_536);
    })(),
    { bytesMax: Number.MAX_SAFE_INTEGER, tooLarge: () => new Error("the input is too large") },
  );
  const facts = {
    keyId: key.id,
    filename: "requests.jsonl",
    mimeType: "application/jsonl",
    purpose: "batch" as const,
    isOutput: false,
    expiresAtMs: null,
  };
  const file = await files.store.add(object, facts, { bytesMax: quotaBytes });
  if (file === undefined) throw await full();
  await files.store.hold(file.id);
  await files.store.delete(workspace.id, file.id);
  return file.id;
}

/** Creates a batch of Messages requests. */
export const createMessageBatch = defineEndpoint<BatchDependencies, undefined, { llmKey: true }>({
  method: "POST",
  path: "/messages/batches",
  base: "api",
  access: { llmKey: true },
  counting: "at-door",
  bodyBytesMax,
  tag: "Batches",
  summary: "Create a batch of messages.",
  description:
    "Anthropic's form: each request with a `custom_id` and the `params` of a message, for any model. Each runs as an ordinary request of " +
    "the key that creates the batch, and is charged once. Parameters are checked when a request runs.",
  rawBody: requestsSchema,
  response: messageBatchSchema,
  encodeError: anthropicMessages.encodeError,
  async handle(context, dependencies) {
    refuseRetention(context, dependencies);
    const caller = context.caller as LlmKeyCaller;
    const body = parseJsonObject(await readJsonText(context.request, bodyBytesMax));
    const text = inputOf(body);
    const notify = notifySchema.optional().safeParse(body["notify"]);
    if (!notify.success) throw badField("notify", "must have webhook_url or emails.");
    const recipients = await recipientsOf(notify.data, caller.workspace.id, dependencies);
    const inputFileId = await storeInput(text, caller, dependencies);
    const asked = {
      workspaceId: caller.workspace.id,
      keyId: caller.key.id,
      form: "anthropic",
      endpoint: "/v1/messages",
      completionWindow: "24h",
      windowMs: 24 * hourMs,
      inputFileId,
      total: (body["requests"] as unknown[]).length,
      outputExpiresSeconds: (resultDays * dayMs) / 1_000,
      metadata: null,
    } as const;
    const { batch, webhookSecret } = await dependencies.batches.create(asked, recipients);
    return context.json({
      ...messageBatch(batch, dependencies.publicUrl()),
      ...secretOf(webhookSecret),
    });
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

/** Returns the batch that the path names. Throws `not_found`. */
async function batchOf(context: BatchContext, { batches }: BatchDependencies): Promise<Batch> {
  const shown = context.param("id");
  const id = batchIdOf(shown);
  const workspaceId = workspaceOf(context).id;
  const batch =
    id === undefined ? undefined : await batches.store.find(workspaceId, id, "anthropic");
  if (batch === undefined) throw noBatch(shown);
  return batch;
}

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
    const batch = await batchOf(context, dependencies);
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
    const batch = await cancel(await batchOf(context, dependencies), dependencies);
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
    const batch = await batchOf(context, dependencies);
    if (!(await dependencies.batches.store.delete(batch.id)))
      throw new GatewayError(
        "bad_request",
        "This batch has not ended. Cancel it, and delete it when it has.",
        { param: "message_batch_id" },
      );
    if (batch.outputFileId !== null)
      await dependencies.files.store.delete(batch.workspaceId, batch.outputFileId);
    return context.json({ id: messageBatchId(batch), type: "message_batch_deleted" });
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
  async handle(context, { batches, files, ...rest }) {
    const batch = await batchOf(context, { batches, files, ...rest });
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

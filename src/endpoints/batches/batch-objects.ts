import { z } from "zod";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { type Batch, type BatchForm, shownBatchId } from "../../batches/batch.ts";
import type { BatchFacts } from "../../batches/open-batches.ts";
import { lazily } from "../../http/endpoint.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import { tokensOfBatch } from "../../inference/dialects/answer-tokens.ts";
import { brand } from "../../platform/kernel/brand.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId } from "../../platform/kernel/ids.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { openaiFileId } from "../files/file-dialect.ts";

const seconds = (ms: number): number => Math.floor(ms / 1000);
const secondsOrNull = (ms: number | null): number | null => (ms === null ? null : seconds(ms));
const isoOrNull = (ms: number | null): string | null =>
  ms === null ? null : new Date(ms).toISOString();

const time = z.int().nullable();

const webhookSecretSchema = z
  .string()
  .optional()
  .describe("Secret that signs the webhook of notify; in the answer to the creation alone.");

/** A batch in OpenAI's form. */
export const batchSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("batch"),
      endpoint: z.string(),
      errors: z
        .object({
          object: z.literal("list"),
          data: z.array(
            z.object({
              code: z.string(),
              message: z.string(),
              param: z.string().nullable(),
              line: z.int().nullable(),
            }),
          ),
        })
        .nullable(),
      input_file_id: z.string(),
      completion_window: z.string(),
      status: z.enum([
        "validating",
        "failed",
        "in_progress",
        "finalizing",
        "completed",
        "expired",
        "cancelling",
        "cancelled",
      ]),
      output_file_id: z.string().nullable(),
      error_file_id: z.string().nullable(),
      created_at: z.int(),
      in_progress_at: time,
      expires_at: z.int(),
      finalizing_at: time,
      completed_at: time,
      failed_at: time,
      expired_at: time,
      cancelling_at: time,
      cancelled_at: time,
      request_counts: z.object({ total: z.int(), completed: z.int(), failed: z.int() }),
      usage: z.record(z.string(), z.unknown()).optional(),
      cost: z.number(),
      reserved: z
        .number()
        .describe("USD that are reserved for the lines that a provider's own batch runs."),
      provider: z
        .string()
        .nullable()
        .describe(
          "The provider whose own batch runs the lines, at its price; null where they run here.",
        ),
      provider_note: z.string().nullable().describe("Why no provider's own batch runs the lines."),
      failures: z
        .record(z.string(), z.int())
        .describe("Requests that failed, by HTTP status; those that were not run, by code."),
      metadata: z.record(z.string(), z.string()).nullable(),
      webhook_secret: webhookSecretSchema,
    })
    .meta({ id: "Batch" }),
);

/** The member of a batch's metadata that says why its lines wait. */
const noteName = `${brand.metadataKey}_note`;

/** Returns the metadata, with a note while lines wait. */
const metadataOf = ({ metadata, pauseNote, status }: Batch): Record<string, string> | null =>
  pauseNote === null || status !== "in_progress"
    ? metadata
    : { ...metadata, [noteName]: pauseNote };

const shownFileId = (id: string | null): string | null => (id === null ? null : openaiFileId(id));

/** Returns a batch as OpenAI's clients see it, with what it cost so far. */
export function openaiBatch(batch: Batch, facts: BatchFacts | undefined) {
  const { status, usage, problems } = batch;
  const endedIn = (wanted: Batch["status"]): number | null =>
    status === wanted ? secondsOrNull(batch.endedAtMs) : null;
  return {
    id: batch.id,
    object: "batch" as const,
    endpoint: batch.endpoint,
    errors: problems === null ? null : { object: "list" as const, data: problems },
    input_file_id: openaiFileId(batch.inputFileId),
    completion_window: batch.completionWindow,
    status,
    output_file_id: shownFileId(batch.outputFileId),
    error_file_id: shownFileId(batch.errorFileId),
    created_at: seconds(batch.createdAtMs),
    in_progress_at: secondsOrNull(batch.inProgressAtMs),
    expires_at: seconds(batch.expiresAtMs),
    finalizing_at: secondsOrNull(batch.finalizingAtMs),
    completed_at: endedIn("completed"),
    failed_at: endedIn("failed"),
    expired_at: endedIn("expired"),
    cancelling_at: secondsOrNull(batch.cancellingAtMs),
    cancelled_at: endedIn("cancelled"),
    request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
    ...(usage === null ? {} : { usage: tokensOfBatch(usage) }),
    cost: usdFromNano(BigInt(batch.costNano)),
    reserved: usdFromNano(facts?.reservedNano ?? 0n),
    provider: facts?.provider ?? null,
    provider_note: facts?.note ?? null,
    failures: batch.failures ?? facts?.failures ?? {},
    metadata: metadataOf(batch),
  };
}

/** A batch in Anthropic's form. */
export const messageBatchSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      type: z.literal("message_batch"),
      processing_status: z.enum(["in_progress", "canceling", "ended"]),
      request_counts: z.object({
        processing: z.int(),
        succeeded: z.int(),
        errored: z.int(),
        canceled: z.int(),
        expired: z.int(),
      }),
      created_at: z.string(),
      expires_at: z.string(),
      ended_at: z.string().nullable(),
      cancel_initiated_at: z.string().nullable(),
      archived_at: z.string().nullable(),
      results_url: z.string().nullable(),
      webhook_secret: webhookSecretSchema,
    })
    .meta({ id: "MessageBatch" }),
);

/**
 * Returns a batch as Anthropic's clients see it. The address of its results is this gateway's, since
 * clients send it their key.
 */
export function messageBatch(batch: Batch, publicUrl: string) {
  const { status, total, completed, failed } = batch;
  const isEnded = batch.endedAtMs !== null;
  const left = Math.max(0, total - completed - failed);
  return {
    id: shownBatchId(batch),
    type: "message_batch" as const,
    processing_status: isEnded
      ? ("ended" as const)
      : status === "cancelling"
        ? ("canceling" as const)
        : ("in_progress" as const),
    request_counts: {
      processing: isEnded ? 0 : left,
      succeeded: completed,
      errored: failed,
      canceled: status === "cancelled" ? left : 0,
      expired: status === "expired" ? left : 0,
    },
    created_at: new Date(batch.createdAtMs).toISOString(),
    expires_at: new Date(batch.expiresAtMs).toISOString(),
    ended_at: isoOrNull(batch.endedAtMs),
    cancel_initiated_at: isoOrNull(batch.cancellingAtMs),
    archived_at: null,
    results_url: isEnded ? `${publicUrl}/v1/messages/batches/${shownBatchId(batch)}/results` : null,
  };
}

/** Returns the record id of a batch for its id in a form; undefined for a text that can be none. */
export const batchIdOf = (shown: string): string | undefined =>
  mayBeId(shown) ? shown.replace(/^msgbatch_/, "batch_") : undefined;

/** Builds the refusal for a batch that this workspace does not have. */
export const noBatch = (shown: string, param = "batch_id"): GatewayError =>
  new GatewayError(
    "not_found",
    `No batch found with id '${shown.slice(0, 100)}' in this workspace.`,
    { param },
  );

/** Returns the batch that a path names, of one form where one is given. Throws `not_found`. */
export async function batchOf(
  context: RequestContext<unknown, KnownCaller>,
  { batches, form }: Pick<Dependencies, "batches"> & { form: BatchForm | undefined },
): Promise<Batch> {
  const shown = context.param("id");
  const id = batchIdOf(shown);
  const workspaceId = workspaceOf(context).id;
  const batch = id === undefined ? undefined : await batches.store.find(workspaceId, id, form);
  if (batch === undefined) throw noBatch(shown);
  return batch;
}

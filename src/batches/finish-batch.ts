import type { FileRecord, FileStore } from "../files/file-store.ts";
import type { ObjectStore } from "../files/object-store.ts";
import type { Kysely } from "kysely";
import type { Clock } from "../platform/kernel/clock.ts";
import type { Batch, BatchStatus, BatchTables } from "./batch.ts";
import type { BatchStore } from "./batch-store.ts";
import { addAnswerTokens, type AnswerTokens } from "../inference/dialects/answer-tokens.ts";
import { lineForms, type NotRun } from "./line-form.ts";
import { isSuccess, type LineStore } from "./line-store.ts";
import { type BatchVault, ResultSeal } from "./result-seal.ts";

/** The dependencies of ending a batch. */
export interface FinishParts {
  batches: BatchStore;
  lines: LineStore;
  files: FileStore;
  objects: ObjectStore;
  vault: BatchVault;
  clock: Clock;
}

type ResultFile = "output" | "error";

/** Writes the results of a batch into files and ends it. Continues what an ended process left. */
export async function finishBatch(
  parts: FinishParts,
  batch: Batch,
  {
    status,
    reason,
  }: { status: Extract<BatchStatus, "completed" | "expired" | "cancelled">; reason: NotRun },
): Promise<void> {
  const seal = await ResultSeal.of(parts.vault, batch);
  const usage: AnswerTokens = {
    inputTokens: 0,
    cachedTokens: 0,
    outputTokens: 0,
    reasoningTokens: 0,
  };
  // Anthropic's clients read successes and failures from one list.
  const isOneFile = batch.form === "anthropic";
  const results = resultsOf(parts, { batch, seal, reason });
  await writeFile(parts, {
    batch,
    kind: "output",
    lines: (async function* () {
      for await (const { text, isSuccess: succeeded } of results()) {
        if (succeeded) addAnswerTokens(usage, lineForms[batch.form].bodyOf(JSON.parse(text)));
        if (succeeded || isOneFile) yield text;
      }
    })(),
  });
  if (!isOneFile)
    await writeFile(parts, {
      batch,
      kind: "error",
      lines: (async function* () {
        for await (const { text, isSuccess: succeeded } of results()) if (!succeeded) yield text;
      })(),
    });
  const { undone } = await parts.lines.left(batch.id);
  const isEnded = await parts.batches.change(batch.id, ["finalizing", "cancelling"], {
    status,
    endedAtMs: parts.clock.nowMs(),
    usage,
    failures: {
      ...(await parts.lines.failures(batch.id)),
      ...(undone > 0 && { [`batch_${reason}`]: undone }),
    },
  });
  if (!isEnded) return;
  await parts.lines.drop(batch.id);
  await parts.files.release(batch.inputFileId);
}

/** Returns a function that reads the results of a batch, those of lines that were not run last. */
const resultsOf = (
  { lines, clock }: FinishParts,
  { batch, seal, reason }: { batch: Batch; seal: ResultSeal; reason: NotRun },
) =>
  async function* (): AsyncGenerator<{ text: string; isSuccess: boolean }> {
    for await (const { line, status, result } of lines.results(batch.id))
      yield { text: seal.open(line, result), isSuccess: isSuccess(status) };
    for await (const line of lines.notRun(batch.id))
      yield { text: lineForms[batch.form].notRun(line, reason, clock.nowMs()), isSuccess: false };
  };

/**
 * Stores lines as a file of the batch, and notes it at the batch; no file where there is none. Lines
 * whose file an ended process has written are read all the same, since they are counted meanwhile.
 */
async function writeFile(
  { objects, files, clock }: FinishParts,
  { batch, kind, lines }: { batch: Batch; kind: ResultFile; lines: AsyncIterable<string> },
): Promise<void> {
  const column = kind === "output" ? "output_file_id" : "error_file_id";
  const known = kind === "output" ? batch.outputFileId : batch.errorFileId;
  if (known !== null) {
    for await (const _ of lines);
    return;
  }
  const object = await objects.write(batch.workspaceId, bytesOf(lines), {
    bytesMax: Number.MAX_SAFE_INTEGER,
    tooLarge: () => new Error("the results of a batch are too large"),
  });
  if (object.bytes === 0) {
    await objects.discard(object.name);
    return;
  }
  const { outputExpiresSeconds: seconds } = batch;
  const facts = {
    keyId: batch.keyId,
    filename: `${batch.id}_${kind}.jsonl`,
    mimeType: "application/jsonl",
    purpose: "batch_output" as const,
    isOutput: true,
    expiresAtMs: seconds === null ? null : clock.nowMs() + seconds * 1_000,
  };
  // Results are paid for, so they are stored beyond the quota, too.
  await files.add(object, facts, {
    bytesMax: Number.MAX_SAFE_INTEGER,
    alongside: async (transaction, { id }: FileRecord) => {
      const { numUpdatedRows } = await (transaction as unknown as Kysely<BatchTables>)
        .updateTable("batches")
        .set({ [column]: id })
        .where("id", "=", batch.id)
        .where(column, "is", null)
        .executeTakeFirstOrThrow();
      return numUpdatedRows > 0n;
    },
  });
}

/** Joins lines in pieces of some length, so that short ones do not each cost a turn. */
async function* bytesOf(lines: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  let text = "";
  for await (const line of lines) {
    text += `${line}\n`;
    if (text.length < 65_536) continue;
    yield Buffer.from(text);
    text = "";
  }
  if (text !== "") yield Buffer.from(text);
}

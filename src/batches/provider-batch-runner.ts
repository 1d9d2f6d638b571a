import type { FileRecord } from "../files/file-store.ts";
import {
  ProviderBatchError,
  type ProviderBatchApi,
} from "../inference/pipeline/batches/provider-batches.ts";
import type { LlmKeyCaller } from "../identity/keys/caller.ts";
import { hourMs } from "../platform/kernel/clock.ts";
import type { StoredContent } from "../platform/spool/spool.ts";
import type { Batch, BatchLine } from "./batch.ts";
import type { BatchRunnerParts, LineOutcome } from "./batch-runner.ts";
import { GatheredInput, RunsHereError } from "./gather-input.ts";
import { lineForms } from "./line-form.ts";
import type { LineResult } from "./line-store.ts";
import type { BatchPlace, ProviderBatchStore } from "./provider-batch-store.ts";
import { ResultSeal } from "./result-seal.ts";
import { settleAnswers } from "./settle-answers.ts";

/** What is held of a workspace's money for the lines of a batch that a provider runs. */
export interface BatchHolds {
  /** Takes the hold. Returns false where the whole is wanted and less is free. */
  take(
    batchId: string,
    caller: LlmKeyCaller,
    hold: { nano: bigint; whole: boolean },
  ): Promise<boolean>;
  /** Returns whether this gateway has the hold, and had it renewed lately. */
  has(batchId: string): boolean;
  /** Runs `take`, which takes an amount of it for one request. */
  outOf<Result>(batchId: string, nano: bigint, take: () => Result): Result;
  free(batchId: string): void;
  freeAll(): void;
}

/** The dependencies of batches that providers run, beside those of all batches. */
export interface ProviderBatchParts {
  places: ProviderBatchStore;
  holds: BatchHolds;
  apiOf(providerId: string): ProviderBatchApi | undefined;
  /** Writes the key of a caller for the time when it may be gone, and reads it again. */
  keepKey(caller: LlmKeyCaller): string | undefined;
  keptCaller(workspaceId: string, text: string): LlmKeyCaller | undefined;
  /** Milliseconds between looks at a provider's batch. */
  pollMs: number;
}

/** How long an unknown batch may take to appear in the provider's list, and the longest wait. */
const appearMs = 30_000;
const waitMsMax = 600_000;

/** How long a provider is asked whether it took a batch, while it does not answer. */
const unreachedMs = 300_000;

/** Hands batches to providers, looks for their end, and has their answers charged. */
export class ProviderBatchRunner {
  private readonly parts: BatchRunnerParts & { provider: ProviderBatchParts };
  private stopping = false;

  constructor(parts: BatchRunnerParts & { provider: ProviderBatchParts }) {
    this.parts = parts;
  }

  /** Ends what is being gathered or charged at the next line, and frees the holds. */
  drain(): void {
    this.stopping = true;
    this.parts.provider.holds.freeAll();
  }

  /** Returns where a batch's lines run; undefined while that is not decided. */
  placeOf(batch: Batch): Promise<BatchPlace | undefined> {
    return this.parts.provider.places.find(batch.id);
  }

  /** Does the next step for a batch that a provider runs, or may run. */
  async advance(batch: Batch, place: BatchPlace | undefined): Promise<void> {
    if (place === undefined) return this.begin(batch);
    await this.holdAgain(batch, place);
    const { clock, provider } = this.parts;
    const mustEnd = batch.status === "cancelling" || clock.nowMs() >= batch.expiresAtMs;
    const isDue = clock.nowMs() >= place.nextPollMs || (mustEnd && place.state === "running");
    const api = provider.apiOf(place.provider ?? "");
    if (!isDue || this.stopping) return;
    if (api === undefined)
      return this.runHere(batch, place, "The provider is not configured any more.");
    try {
      await this.follow(batch, place, { api, mustEnd });
    } catch (error) {
      if (error instanceof ProviderBatchError && error.status === 404)
        return this.runHere(batch, place, "The provider does not know its batch any more.");
      if (place.job === null && clock.nowMs() > place.submittedAtMs + unreachedMs)
        return this.runHere(batch, place, "The provider could not be reached.");
      const waitMs = Math.min(waitMsMax, provider.pollMs * 2 ** Math.min(place.tries, 10));
      await provider.places.put({
        ...place,
        tries: place.tries + 1,
        nextPollMs: clock.nowMs() + waitMs,
      });
      throw error;
    }
  }

  private async follow(
    batch: Batch,
    place: BatchPlace,
    { api, mustEnd }: { api: ProviderBatchApi; mustEnd: boolean },
  ): Promise<void> {
    const { places, pollMs } = this.parts.provider;
    const { job } = place;
    if (job === null) return this.findAgain(batch, place, api);
    let { state } = place;
    if (mustEnd && state === "running") {
      await api.cancel(job);
      state = "cancelling";
    }
    if (!(await api.hasEnded(job))) {
      const nextPollMs = this.parts.clock.nowMs() + pollMs;
      return places.put({ ...place, state, nextPollMs, tries: 0 });
    }
    await settleAnswers(this.parts, {
      batch,
      place,
      answers: api.answers(job),
      isStopping: () => this.stopping,
      fail: (line, outcome) => this.fail(batch, line, outcome),
    });
    if (this.stopping) return;
    await api.forget(job).catch(this.parts.onError);
    await this.runHere(batch, place, null);
  }

  /** Looks for a batch of which it was not learned whether the provider took it. */
  private async findAgain(batch: Batch, place: BatchPlace, api: ProviderBatchApi): Promise<void> {
    const { places, pollMs } = this.parts.provider;
    const nowMs = this.parts.clock.nowMs();
    const { submittedAtMs: sinceMs } = place;
    const { undone: requests } = await this.parts.lines.left(batch.id);
    const job = await api.find({ marker: batch.id, sinceMs, requests });
    if (job !== undefined)
      return places.put({ ...place, state: "running", job, nextPollMs: nowMs });
    if (nowMs < sinceMs + appearMs)
      return places.put({ ...place, nextPollMs: nowMs + Math.min(pollMs, 5_000) });
    return this.runHere(batch, place, "The provider could not be reached.");
  }

  /** Decides where the lines of a batch run, and hands them over. */
  private async begin(batch: Batch): Promise<void> {
    const { callerOf, provider } = this.parts;
    const caller = callerOf(batch.keyId);
    const key = caller && provider.keepKey(caller);
    if (caller === undefined || key === undefined)
      return this.runHere(batch, undefined, "The key of this batch cannot be charged later.");
    const input = new GatheredInput(
      {
        ...this.parts,
        apiOf: (id) => provider.apiOf(id),
        fail: (line, outcome) => this.fail(batch, line, outcome),
        isStopping: () => this.stopping,
      },
      { batch, caller },
    );
    try {
      await this.submit(batch, { input, caller, key });
    } catch (error) {
      if (!(error instanceof RunsHereError)) throw error;
      await this.runHere(batch, undefined, error.message);
    }
  }

  private async submit(
    batch: Batch,
    { input, caller, key }: { input: GatheredInput; caller: LlmKeyCaller; key: string },
  ): Promise<void> {
    const { provider, clock, files } = this.parts;
    const file = await this.write(batch, input);
    const { provider: providerId, api, path, upstreamModel } = input.chosen;
    const isHeld = await provider.holds.take(batch.id, caller, {
      nano: input.ceilingNano,
      whole: true,
    });
    if (!isHeld) {
      await files.release(file.id);
      throw new RunsHereError("There is not enough money to reserve the worst case of all lines.");
    }
    const nowMs = clock.nowMs();
    const place: BatchPlace = {
      batchId: batch.id,
      state: "submitting",
      reason: null,
      provider: providerId,
      job: null,
      inputFileId: file.id,
      key,
      submittedAtMs: nowMs,
      nextPollMs: nowMs + provider.pollMs,
      tries: 0,
    };
    await provider.places.put(place);
    try {
      const { headers } = input;
      const content = contentOf(this.parts.files, file);
      const job = await api.create({ content, path, upstreamModel, headers, marker: batch.id });
      const nextPollMs = clock.nowMs() + provider.pollMs;
      await provider.places.put({ ...place, state: "running", job, nextPollMs });
    } catch (error) {
      this.parts.onError(error);
      // Any other failure may have come after the provider took the batch, which is looked for.
      if (error instanceof ProviderBatchError && error.status < 500)
        await this.runHere(batch, place, "The provider refused the batch.");
    }
  }

  /** Stores the content of a provider's batch as a file that no list shows. */
  private async write(batch: Batch, input: GatheredInput): Promise<FileRecord> {
    const { objects, files, clock } = this.parts;
    const pieces = input.pieces();
    const first = await pieces.next();
    if (first.done === true) throw new RunsHereError("No line could be sent.");
    const object = await objects.write(
      batch.workspaceId,
      (async function* () {
        yield first.value;
        yield* pieces;
      })(),
      { bytesMax: Number.MAX_SAFE_INTEGER, tooLarge: () => new Error("too large") },
    );
    const facts = {
      keyId: batch.keyId,
      filename: `${batch.id}_provider.jsonl`,
      mimeType: "application/jsonl",
      purpose: "batch" as const,
      isOutput: true,
      expiresAtMs: clock.nowMs() + 48 * hourMs,
    };
    const file = await files.add(object, facts, { bytesMax: Number.MAX_SAFE_INTEGER });
    if (file === undefined) throw new Error("the input of a provider's batch was not stored");
    await files.hold(file.id);
    await files.delete(batch.workspaceId, file.id);
    return file;
  }

  /** Takes the hold of a batch that another process had, or that is to be renewed. */
  private async holdAgain({ id, workspaceId }: Batch, { key }: BatchPlace): Promise<void> {
    const { holds, keptCaller } = this.parts.provider;
    if (holds.has(id) || key === null || this.stopping) return;
    const caller = keptCaller(workspaceId, key);
    const reserved = await this.parts.lines.reserved([id]);
    if (caller !== undefined)
      await holds.take(id, caller, { nano: reserved.get(id) ?? 0n, whole: false });
  }

  /** Has the lines that have no result run here. */
  private async runHere(
    batch: Batch,
    place: BatchPlace | undefined,
    reason: string | null,
  ): Promise<void> {
    const { provider, files } = this.parts;
    await provider.places.put({
      batchId: batch.id,
      provider: null,
      job: null,
      inputFileId: null,
      key: null,
      submittedAtMs: 0,
      nextPollMs: 0,
      tries: 0,
      ...(reason === null && { provider: place?.provider ?? null }),
      state: "here",
      reason,
    });
    provider.holds.free(batch.id);
    if (place?.inputFileId != null) await files.release(place.inputFileId);
  }

  /** Stores that a line has failed, and counts it. */
  private async fail(batch: Batch, line: BatchLine, answer: LineOutcome): Promise<void> {
    const seal = await ResultSeal.of(this.parts.vault, batch);
    const result: LineResult = {
      batch_id: batch.id,
      line: line.line,
      status: answer.status,
      cost_nano: 0,
      result: seal.seal(
        line.line,
        lineForms[batch.form].answered(line, answer, this.parts.clock.nowMs()),
      ),
    };
    await this.parts.lines.markDone(batch.id, [await this.parts.lines.fail(result)]);
  }
}

/** Returns the content of a file, which is read while it is sent. */
const contentOf = (files: BatchRunnerParts["files"], file: FileRecord): StoredContent => ({
  size: file.object.bytes,
  async read(start, length) {
    const pieces: Uint8Array[] = [];
    const to = Math.min(start + length, file.object.bytes);
    for await (const piece of files.read(file, { from: start, to })) pieces.push(piece);
    return Buffer.concat(pieces);
  },
});

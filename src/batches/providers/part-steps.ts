import type { ProviderBatchApi } from "../../inference/pipeline/batches/provider-batches.ts";
import { ProviderCallError } from "../../inference/pipeline/batches/provider-api.ts";
import type { StoredContent } from "../../platform/spool/spool.ts";
import type { FileRecord, FileStore } from "../../files/file-store.ts";
import type { Batch, BatchLine } from "../batch.ts";
import type { LineOutcome } from "../line-form.ts";
import type { BatchPlace, ProviderPart } from "./provider-batch-store.ts";
import type { SharedBatchParts } from "../batch-parts.ts";
import { settleAnswers } from "./settle-answers.ts";

/** How long an unknown batch may take to appear in the provider's list. */
const appearMs = 30_000;

/** How long a provider is asked whether it took a batch, while it does not answer. */
const unreachedMs = 300_000;

/** How often results are read again that are no JSON; their lines then run here. */
const readsMax = 3;

/** The longest wait until a lost batch is looked for again. */
const lookWaitMs = 5_000;

type StepParts = SharedBatchParts & {
  isStopping(): boolean;
  /** Stores that a line has failed without a charge. */
  fail(line: BatchLine, answer: LineOutcome): Promise<void>;
};

/** Takes the next step of each part of a batch that a provider runs. */
export class PartSteps {
  /** Milliseconds until the next look. */
  waitMs: number;
  private readonly batch: Batch;
  private readonly api: ProviderBatchApi;

  constructor(
    private readonly parts: StepParts,
    { batch, api }: { batch: Batch; api: ProviderBatchApi },
  ) {
    this.batch = batch;
    this.api = api;
    this.waitMs = parts.provider.pollMs;
  }

  /**
   * Takes the next step of each part, and stores each. A part whose provider fails does not keep the
   * others; the first failure is returned.
   */
  async take(place: BatchPlace, mustEnd: boolean): Promise<unknown> {
    let failure: unknown;
    let current = place;
    for (const [index, part] of place.parts.entries()) {
      if (part.state === "ended" || this.parts.isStopping()) continue;
      const save: SavePart = async (change, reason) => {
        const changed = { ...(current.parts[index] as ProviderPart), ...change };
        const parts = current.parts.with(index, changed);
        current = { ...current, parts, reason: current.reason ?? reason ?? null };
        await this.parts.provider.places.put(current);
      };
      try {
        await this.step(part, { save, mustEnd, place: current });
      } catch (error) {
        failure ??= error;
        const { job } = current.parts[index] as ProviderPart;
        const nowMs = this.parts.clock.nowMs();
        if (error instanceof ProviderCallError && error.status === 404 && job !== null)
          await this.end(part, save, "The provider does not know its batch any more.");
        else if (part.state === "submitting" && nowMs > part.submittedAtMs + unreachedMs)
          await this.end(part, save, "The provider could not be reached.");
      }
    }
    return failure;
  }

  private async step(
    part: ProviderPart,
    { save, mustEnd, place }: { save: SavePart; mustEnd: boolean; place: BatchPlace },
  ): Promise<void> {
    const { api, batch } = this;
    if (part.state === "waiting")
      return mustEnd ? this.end(part, save, undefined) : this.submit(part, save);
    const { job } = part;
    if (job === null) return this.findAgain(part, { save, provider: place.provider ?? "" });
    if (mustEnd && part.state === "running") {
      await api.cancel(job);
      await save({ state: "cancelling" });
    }
    const end = await api.endOf(job);
    if (end === undefined) return;
    const { fail, isStopping } = this.parts;
    const { answered, foreign, unread } = await settleAnswers(this.parts, {
      batch,
      place,
      answers: api.answers(job),
      isStopping,
      fail,
    });
    if (isStopping()) return;
    // What was cut off or changed on its way may come whole the next time.
    if (unread > 0 && place.tries < readsMax)
      throw new Error("answers of a provider's batch could not be read");
    // A batch that was found by its time may turn out to be another one.
    if (foreign === 0) await api.forget(job).catch((error: unknown) => this.parts.onError(error));
    const reason =
      end.rejection === null ? undefined : `The provider rejected the batch: ${end.rejection}.`;
    await this.end(part, save, reason, answered > 0);
  }

  private async submit(part: ProviderPart, save: SavePart): Promise<void> {
    const { clock, files } = this.parts;
    const { path, upstreamModel, headers, marker, inputFileId } = part;
    const file = inputFileId === null ? undefined : await files.heldFile(inputFileId);
    if (file === undefined) return this.end(part, save, "The requests of the batch are gone.");
    await save({ state: "submitting", submittedAtMs: clock.nowMs() });
    try {
      const content = contentOf(files, file);
      const job = await this.api.create({
        content,
        path,
        upstreamModel: upstreamModel ?? "",
        headers,
        marker,
      });
      await save({ state: "running", job });
    } catch (error) {
      this.parts.onError(error);
      // Any other failure may have come after the provider took the batch, which is looked for.
      if (error instanceof ProviderCallError && error.status < 500)
        await this.end(part, save, "The provider refused the batch.");
    }
  }

  /** Looks for a batch of which it was not learned whether the provider took it. */
  private async findAgain(
    part: ProviderPart,
    { save, provider }: { save: SavePart; provider: string },
  ): Promise<void> {
    const { marker, submittedAtMs: sinceMs, requests } = part;
    const known = await this.parts.provider.places.jobsAt(provider);
    const job = await this.api.find({ marker, sinceMs, requests, known });
    if (job !== undefined) {
      this.waitMs = 0;
      await save({ state: "running", job });
    } else if (this.parts.clock.nowMs() < sinceMs + appearMs)
      this.waitMs = Math.min(this.waitMs, lookWaitMs);
    else await this.end(part, save, "The provider could not be reached.");
  }

  /** Ends a part; its lines without a result run here from now on. */
  private async end(
    part: ProviderPart,
    save: SavePart,
    reason: string | undefined,
    hasAnswered = false,
  ): Promise<void> {
    const { files, lines } = this.parts;
    if (part.inputFileId !== null) await files.release(part.inputFileId);
    await lines.takeBack(this.batch.id, part);
    await save({ state: "ended", hasAnswered, inputFileId: null }, reason);
  }
}

type SavePart = (change: Partial<ProviderPart>, reason?: string) => Promise<void>;

/** Returns the content of a file, which is read while it is sent. */
const contentOf = (files: FileStore, file: FileRecord): StoredContent => ({
  size: file.object.bytes,
  async read(start, length) {
    const pieces: Uint8Array[] = [];
    const to = Math.min(start + length, file.object.bytes);
    for await (const piece of files.read(file, { from: start, to })) pieces.push(piece);
    return Buffer.concat(pieces);
  },
});

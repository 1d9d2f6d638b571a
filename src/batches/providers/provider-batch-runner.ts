import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { hourMs } from "../../platform/kernel/clock.ts";
import type { Batch, BatchLine } from "../batch.ts";
import type { SharedBatchParts } from "../batch-parts.ts";
import { RunsHereError } from "./gather-input.ts";
import { GatheredInput } from "./gathered-input.ts";
import { lineForms, type LineOutcome } from "../line-form.ts";
import type { LineResult } from "../line-store.ts";
import { PartSteps } from "./part-steps.ts";
import { accountOf, type BatchPlace } from "./provider-batch-store.ts";
import { ResultSeal } from "../result-seal.ts";

/** The longest wait between looks at a provider that does not answer. */
const waitMsMax = 600_000;

/** Hands batches to providers, looks for their end, and has their answers charged. */
export class ProviderBatchRunner {
  private stopping = false;

  constructor(private readonly parts: SharedBatchParts) {}

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
    const mayCancel = place.parts.some(({ state }) => state === "running" || state === "waiting");
    const isDue = clock.nowMs() >= place.nextPollMs || (mustEnd && mayCancel);
    const keyId = accountOf(place);
    const { workspaceId } = batch;
    const api = provider.apiOf(place.provider ?? "", { workspaceId, keyId });
    if (!isDue || this.stopping) return;
    if (api === undefined)
      return this.runHere(
        batch,
        place,
        keyId === null
          ? "The provider is not configured any more."
          : "The own provider key of the batch is gone.",
      );
    const steps = new PartSteps(
      {
        ...this.parts,
        isStopping: () => this.stopping,
        fail: (line, answer) => this.fail(batch, line, answer),
      },
      { batch, api },
    );
    const failure = await steps.take(place, mustEnd);
    const current = await provider.places.find(batch.id);
    if (current === undefined || this.stopping) return;
    const endedOf = ({ parts }: BatchPlace) =>
      parts.filter(({ state }) => state === "ended").length;
    if (endedOf(current) === current.parts.length)
      return this.runHere(batch, current, current.reason);
    // What was reserved for lines that run here now is free for them; the rest is taken again.
    if (endedOf(current) > endedOf(place)) provider.holds.free(batch.id);
    const tries = failure === undefined ? 0 : current.tries + 1;
    const waitMs = Math.min(waitMsMax, provider.pollMs * 2 ** Math.min(tries, 10));
    const nextPollMs = clock.nowMs() + (tries === 0 ? steps.waitMs : waitMs);
    await provider.places.put({ ...current, tries, nextPollMs });
    if (failure !== undefined) throw failure;
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
        apiOf: (id, keyId) => provider.apiOf(id, { workspaceId: batch.workspaceId, keyId }),
        store: (content) => this.store(batch, content),
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
    const { provider, files } = this.parts;
    const parts = await input.gather();
    const { provider: providerId } = input;
    const isHeld = await provider.holds.take(batch.id, caller, {
      nano: input.ceilingNano,
      whole: true,
    });
    if (!isHeld) {
      for (const { inputFileId } of parts)
        if (inputFileId !== null) await files.release(inputFileId);
      throw new RunsHereError("There is not enough money to reserve the worst case of all lines.");
    }
    const place: BatchPlace = {
      batchId: batch.id,
      state: "away",
      reason: null,
      provider: providerId,
      parts,
      key,
      nextPollMs: 0,
      tries: 0,
    };
    try {
      await provider.places.put(place);
    } catch (error) {
      provider.holds.free(batch.id);
      throw error;
    }
    await this.advance(batch, place);
  }

  /** Stores the content of a provider's batch as a held file that no list shows. */
  private async store(batch: Batch, content: AsyncIterable<Uint8Array>): Promise<string> {
    const { objects, files, clock } = this.parts;
    const object = await objects.write(batch.workspaceId, content, {
      bytesMax: Number.MAX_SAFE_INTEGER,
      tooLarge: () => new Error("too large"),
    });
    const facts = {
      keyId: batch.keyId,
      filename: `${batch.id}_provider.jsonl`,
      mimeType: "application/jsonl",
      purpose: "batch" as const,
      isOutput: true,
      expiresAtMs: clock.nowMs() + 48 * hourMs,
    };
    const file = await files.add(object, facts, {
      bytesMax: Number.MAX_SAFE_INTEGER,
      isHeldOnly: true,
    });
    if (file === undefined) throw new Error("the input of a provider's batch was not stored");
    return file.id;
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
    const { provider, files, lines } = this.parts;
    const hasServed = place?.parts.some(({ hasAnswered }) => hasAnswered) === true;
    await lines.takeBack(batch.id);
    await provider.places.put({
      batchId: batch.id,
      state: "here",
      reason: reason ?? (hasServed ? null : "The provider's batch ended without an answer."),
      provider: hasServed ? (place?.provider ?? null) : null,
      parts: [],
      key: null,
      nextPollMs: 0,
      tries: 0,
    });
    provider.holds.free(batch.id);
    for (const { inputFileId } of place?.parts ?? [])
      if (inputFileId !== null) await files.release(inputFileId);
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

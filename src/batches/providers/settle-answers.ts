import type { BatchAnswer } from "../../inference/pipeline/batches/provider-batches.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { Batch, BatchLine } from "../batch.ts";
import type { SharedBatchParts } from "../batch-parts.ts";
import { lineOfId } from "./gather-input.ts";
import { chargedFailure, lineForms, type LineOutcome } from "../line-form.ts";
import { type LineResult, resultRow } from "../line-store.ts";
import { accountOf, type BatchPlace } from "./provider-batch-store.ts";
import { readBody } from "../input-reader.ts";
import { ResultSeal } from "../result-seal.ts";

/** Answers that are charged at once, and read before they are. */
const answersAtOnce = 64;

interface Settling {
  batch: Batch;
  place: BatchPlace;
  answers: AsyncIterable<BatchAnswer>;
  isStopping(): boolean;
  /** Stores that a line has failed without a charge. */
  fail(line: BatchLine, outcome: LineOutcome): Promise<void>;
}

/**
 * Charges the answers of a provider's batch, each once: answers whose charge an earlier process
 * committed are only counted. A line without an answer, or with a failure that may pass, remains.
 * Returns how many of the answers are of this batch, of another one, and could not be read. Rejects
 * once all were read, where one could not be charged yet.
 */
export async function settleAnswers(
  parts: SharedBatchParts,
  settling: Settling,
): Promise<{ answered: number; foreign: number; unread: number }> {
  const counts = { answered: 0, foreign: 0, unread: 0 };
  const { batch, place, answers, isStopping } = settling;
  const caller = parts.provider.keptCaller(batch.workspaceId, place.key ?? "");
  if (caller === undefined) throw new Error("the workspace of a batch is gone");
  const settle = new AnswerSettlement(parts, {
    ...settling,
    caller,
    seal: await ResultSeal.of(parts.vault, batch),
  });
  let some = new Map<number, BatchAnswer>();
  for await (const answer of answers) {
    if (isStopping()) return counts;
    const { customId } = answer;
    const line = customId === null ? undefined : lineOfId(batch.id, customId);
    if (customId === null) counts.unread += 1;
    else if (line === undefined) counts.foreign += 1;
    else if (answer.status !== 0 && !some.has(line)) {
      counts.answered += 1;
      some.set(line, answer);
    }
    if (some.size < answersAtOnce) continue;
    await settle.all(some);
    some = new Map();
  }
  await settle.all(some);
  if (settle.failure !== undefined) throw settle.failure;
  return counts;
}

/** Charges answers of one batch. */
class AnswerSettlement {
  /** The first failure to charge an answer, which keeps no other from being charged. */
  failure: unknown;

  constructor(
    private readonly parts: SharedBatchParts,
    private readonly facts: Settling & { caller: LlmKeyCaller; seal: ResultSeal },
  ) {}

  /** Charges some answers and counts their lines. */
  async all(answers: ReadonlyMap<number, BatchAnswer>): Promise<void> {
    const { lines } = this.parts;
    const { batch } = this.facts;
    const open = await lines.undone(batch.id, [...answers.keys()]);
    const settled = await Promise.all(
      open.map(async ({ line, result }) => {
        if (result !== undefined && result.status !== 0) return result;
        return this.one(line, answers.get(line.line) as BatchAnswer).catch((error: unknown) => {
          this.failure ??= error;
          return undefined;
        });
      }),
    );
    const results = settled.filter((result) => result !== undefined);
    if (results.length > 0) await lines.markDone(batch.id, results);
  }

  /** Charges one answer. Returns its result; undefined where the line has failed, or remains. */
  private async one(line: BatchLine, answer: BatchAnswer): Promise<LineResult | undefined> {
    const { lines, files, clock } = this.parts;
    const { batch, fail } = this.facts;
    const outcome = await this.run(line, answer, await readBody(files, batch, line));
    const committed = await lines.result(batch.id, line.line);
    if (committed !== undefined && committed.status !== 0) return committed;
    const isAnswered = answer.status >= 200 && answer.status < 300;
    if (committed !== undefined) return void (await fail(line, outcome));
    if (!isAnswered) return outcome.mayRetry ? undefined : void (await fail(line, outcome));
    // A model that is gone from the catalog may come back; it is not awaited for ever.
    const mayPass = outcome.mayRetry || clock.nowMs() < batch.expiresAtMs;
    if (outcome.status === 503 && mayPass)
      throw new Error("an answer of a batch could not be charged yet");
    return this.withoutRequest(line, answer, outcome);
  }

  /**
   * Charges an answer whose request cannot be read as it was any more, since its preset, or a file
   * that it names, is gone: the answer is read by itself.
   */
  private async withoutRequest(
    line: BatchLine,
    answer: BatchAnswer,
    outcome: LineOutcome,
  ): Promise<LineResult | undefined> {
    const { lines } = this.parts;
    const { batch, fail } = this.facts;
    await this.run(line, answer, leastRequest(batch.endpoint, line.model ?? ""));
    const committed = await lines.result(batch.id, line.line);
    if (committed !== undefined && committed.status !== 0) return committed;
    return void (await fail(line, outcome));
  }

  private run(line: BatchLine, answer: BatchAnswer, bodyText: string): Promise<LineOutcome> {
    const { clock, run, provider } = this.parts;
    const { batch, place, caller, seal } = this.facts;
    const ceilingNano = BigInt(line.reservedNano ?? 0);
    return run({
      caller,
      batch,
      bodyText,
      leg: {
        kind: "return",
        provider: place.provider ?? "",
        model: line.model ?? "",
        upstreamModel: line.upstreamModel ?? "",
        account: accountOf(place),
        status: answer.status,
        text: answer.text,
        ceilingNano,
        outOfHold: (take) => provider.holds.outOf(batch.id, ceilingNano, take),
      },
      rowOf: (served) =>
        resultRow({
          batch_id: batch.id,
          line: line.line,
          status: served?.status ?? 0,
          cost_nano: served?.costNano ?? 0,
          result: seal.seal(
            line.line,
            lineForms[batch.form].answered(line, served ?? chargedFailure(batch), clock.nowMs()),
          ),
        }),
    });
  }
}

/** Returns the least request of an endpoint, for the reading of its answer. */
function leastRequest(endpoint: string, model: string): string {
  if (endpoint === "/v1/completions") return JSON.stringify({ model, prompt: "-" });
  const isText = /\/(?:responses|embeddings|moderations)$/.test(endpoint);
  const messages = [{ role: "user", content: "-" }];
  return JSON.stringify(isText ? { model, input: "-" } : { model, max_tokens: 1, messages });
}

import type { LlmKeyCaller } from "../../src/identity/keys/caller.ts";
import type {
  BackgroundJob,
  BackgroundSink,
  RunBackground,
} from "../../src/inference/responses/job-store.ts";
import { recordOf } from "./stored-responses.ts";
import type { FrameSource } from "../../src/platform/kernel/frame-source.ts";

/** A started run; the test decides what happens in it. */
export interface ScriptedRun {
  job: BackgroundJob;
  sink: BackgroundSink;
  signal: AbortSignal;
  /** Sends an event as the dialect's encoder does, with its number in the data. */
  event(name: string, fields?: Record<string, unknown>): void;
  /** Sends the events that end a whole answer, and ends the run. */
  complete(text?: string): void;
  resolve(): void;
  reject(error: unknown): void;
}

/** Runs of background jobs that tests play by hand. */
export class ScriptedBackground {
  readonly begun: ScriptedRun[] = [];
  private waiting: { count: number; resolve: () => void }[] = [];

  readonly run: RunBackground = (job, sink, signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let sequence = 0;
    const event = (name: string, fields: Record<string, unknown> = {}): void =>
      sink.event(name, JSON.stringify({ type: name, sequence_number: sequence++, ...fields }));
    this.begun.push({
      job,
      sink,
      signal,
      event,
      resolve,
      reject,
      complete: (text = "done") => {
        event("response.completed", { response: recordOf(job.responseId, { output_text: text }) });
        event("response.service.metadata", { service_metadata: {} });
        resolve();
      },
    });
    this.waiting = this.waiting.filter((each) => each.count > this.begun.length || each.resolve());
    return promise;
  };

  /** Returns the n-th run, counted from 1, as soon as it has started. */
  async nth(count: number): Promise<ScriptedRun> {
    if (this.begun.length < count)
      await new Promise<void>((resolve) => this.waiting.push({ count, resolve }));
    const run = this.begun[count - 1];
    if (run === undefined) throw new Error(`run ${count} has not begun`);
    return run;
  }
}

/** Returns a caller with only the properties that the runner reads. */
export const callerWith = (keyId: string): LlmKeyCaller =>
  ({ kind: "llm-key", key: { id: keyId }, workspace: { id: "ws_a" } }) as LlmKeyCaller;

/** Returns everything that a source yields until it ends. */
export async function readAll(source: FrameSource): Promise<string> {
  let text = "";
  for (let frames = await source.next(); frames !== undefined; frames = await source.next())
    text += frames;
  return text;
}

/** Returns numbers and names of the events in frames. */
export const namesIn = (frames: string): string[] =>
  [...frames.matchAll(/^event: (.*)\ndata: .*?"sequence_number":(\d+)/gm)].map(
    ([, name, number]) => `${number} ${name}`,
  );

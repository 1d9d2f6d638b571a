import type { InferenceDependencies } from "../../inference/pipeline/execution.ts";
import type { InferenceCall, KeptForm } from "../../inference/pipeline/inference-call.ts";
import { keepContent, keptSinceMs } from "../../inference/pipeline/settlement/keep-content.ts";
import type { KeptText } from "../../platform/kernel/json/text-keeper.ts";
import type { MediaBody } from "./read-media.ts";

type Keeping = Pick<InferenceDependencies, "contents" | "clock">;

/**
 * Returns the call of a request with the form in which it is kept, where its workspace keeps
 * contents. `formOf` is given the most bytes that are kept of its files, and of its answer.
 */
export function keptAs(
  deps: Keeping,
  {
    call,
    sent,
    formOf,
  }: {
    call: InferenceCall;
    sent: Pick<MediaBody, "close">;
    formOf(bytesMax: number): Omit<KeptForm, "free">;
  },
): InferenceCall {
  if (deps.contents === undefined) return call;
  const form = formOf(deps.contents.mediaBytesMax);
  const kept = { ...call, keptForm: { ...form, free: sent.close } };
  return keptSinceMs(deps, kept) === undefined ? call : kept;
}

/**
 * Keeps a request that was answered whole, where its workspace keeps contents. `answer` is given the
 * most bytes that are kept of the answer's files.
 */
export function keepWhole(
  deps: Keeping,
  {
    call,
    sent,
    answer,
  }: {
    call: InferenceCall;
    sent: Pick<MediaBody, "lend">;
    answer(bytesMax: number): KeptText;
  },
): void {
  if (call.keptForm === undefined) return;
  sent.lend();
  const bytesMax = deps.contents?.mediaBytesMax ?? 0;
  keepContent(deps, { call, streamed: false }, () => answer(bytesMax));
}

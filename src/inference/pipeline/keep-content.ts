import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { Content, KeptText } from "../../insights/archive/content-insert.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { InferenceCall } from "./inference-call.ts";
import type { Settled, Settlement } from "./settle.ts";
import type { WholeAnswer } from "../dialects/passthrough.ts";

/** Most characters that are kept of a request, and of an answer. */
const keptCharactersMax = 256 * 1024;

/** Where prompts and answers go that a workspace asks to be kept. */
export interface ContentPort {
  /**
   * The wall time since when a caller's workspace asks for it; undefined where it does not, or
   * where it or the key forbids it.
   */
  keptSinceMs(caller: LlmKeyCaller): number | undefined;
  /** Takes a content; never waits. */
  write(content: Content): void;
}

/** What keeping looks at. */
interface KeepingDependencies {
  contents?: ContentPort | undefined;
  clock: Clock;
}

/** Whether a request asks for zero data retention, or that its answer is not stored. */
function asksForNone({ provider, store }: InferenceCall["body"]): boolean {
  const zdr =
    typeof provider === "object" && provider !== null && "zdr" in provider && provider.zdr === true;
  return zdr || store === false;
}

/** Since when contents such as a request's are kept; undefined where its own is not. */
export const keptSinceMs = (
  { contents }: KeepingDependencies,
  call: InferenceCall,
): number | undefined =>
  contents === undefined || call.surface !== "chat" || asksForNone(call.body)
    ? undefined
    : contents.keptSinceMs(call.caller);

/** The beginning of a text, with whole characters only. */
const keptText = (text: string): KeptText =>
  text.length <= keptCharactersMax
    ? { text, isCut: false }
    : { text: text.slice(0, keptCharactersMax).toWellFormed(), isCut: true };

/** The frames of a stream as far as they are kept. */
export class KeptFrames {
  private text = "";
  private isFull = false;

  /** Adds frames that the client gets. */
  add(frames: string): void {
    if (this.isFull) return;
    this.isFull = this.text.length + frames.length > keptCharactersMax;
    this.text = this.isFull
      ? this.text + frames.slice(0, keptCharactersMax - this.text.length).toWellFormed()
      : this.text + frames;
  }

  /** What was kept so far. */
  get kept(): KeptText {
    return { text: this.text, isCut: this.isFull };
  }
}

/** Keeps what a settled request asked and was answered, where its workspace asks for it. */
export function keepContent(
  deps: KeepingDependencies,
  { call, streamed }: Pick<Settlement, "call" | "streamed">,
  answer: () => KeptText,
): void {
  // Asked for again when it is settled: it may have been turned off meanwhile.
  const sinceMs = keptSinceMs(deps, call);
  if (sinceMs === undefined) return;
  deps.contents?.write({
    generationId: call.generationId,
    workspaceId: call.caller.workspace.id,
    keyId: call.caller.key.id,
    // Where the clock was set back, it belongs to the time since when contents are kept all the same.
    createdAtMs: Math.max(sinceMs, deps.clock.nowMs()),
    surface: call.recordedAs,
    streamed,
    request: keptText(call.text),
    answer: answer(),
  });
}

/** A whole answer as its client gets it, without what the gateway adds about who served it. */
export const wholeKept = (
  { call, candidate, metered, answer }: Settlement & { answer: WholeAnswer },
  { chargedNano, free, isByok }: Settled,
): KeptText =>
  keptText(
    answer.render({
      id: call.shownId,
      model: candidate.model.id,
      metered,
      chargedNano,
      free,
      isByok,
      fallback: undefined,
      metadataText: () => "{}",
    }),
  );

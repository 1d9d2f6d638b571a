import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { Content, KeptText } from "../../insights/archive/content-insert.ts";
import { keptText } from "../../insights/archive/kept-text.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { InferenceCall } from "./inference-call.ts";
import type { Settled, Settlement } from "./settle.ts";
import type { WholeAnswer } from "../dialects/shared/passthrough.ts";

/** Stores prompts and answers for workspaces that keep them. */
export interface ContentPort {
  /**
   * Returns the wall time, in milliseconds, since which the caller's workspace keeps contents;
   * undefined where it does not, or where the workspace or the key forbids it.
   */
  keptSinceMs(caller: LlmKeyCaller): number | undefined;
  /** Takes a content; never blocks. */
  write(content: Content): void;
}

/** The dependencies of keeping contents. */
interface KeepingDependencies {
  contents?: ContentPort | undefined;
  clock: Clock;
}

/** Returns whether a request asks for zero data retention, or for its answer not to be stored. */
export function asksForNone({ provider, store }: InferenceCall["body"]): boolean {
  const zdr =
    typeof provider === "object" && provider !== null && "zdr" in provider && provider.zdr === true;
  return zdr || store === false;
}

/**
 * Returns since when contents are kept for a request's workspace; undefined where this request is
 * not to be kept.
 */
export const keptSinceMs = (
  { contents }: KeepingDependencies,
  call: InferenceCall,
): number | undefined =>
  contents === undefined || call.surface !== "chat" || asksForNone(call.body)
    ? undefined
    : contents.keptSinceMs(call.caller);

/** Keeps the prompt and the answer of a settled request, where its workspace keeps them. */
export function keepContent(
  deps: KeepingDependencies,
  { call, streamed }: Pick<Settlement, "call" | "streamed">,
  answer: () => KeptText,
): void {
  // Asked again at settlement, since it may have been turned off during the request.
  const sinceMs = keptSinceMs(deps, call);
  if (sinceMs === undefined) return;
  deps.contents?.write({
    generationId: call.generationId,
    workspaceId: call.caller.workspace.id,
    keyId: call.caller.key.id,
    // Where the clock was set back, the content still counts as created while contents were kept.
    createdAtMs: Math.max(sinceMs, deps.clock.nowMs()),
    surface: call.recordedAs,
    streamed,
    request: keptText(call.text),
    answer: answer(),
  });
}

/**
 * Returns a whole answer as its client gets it, without the members that the gateway adds about who
 * served it.
 */
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

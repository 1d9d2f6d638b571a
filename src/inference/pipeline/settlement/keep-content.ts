import type { LlmKeyCaller } from "../../../identity/keys/caller.ts";
import type { Content } from "../../../insights/archive/content-insert.ts";
import { type KeptText, keptText } from "../../../platform/kernel/json/text-keeper.ts";
import type { LateContent } from "../../../insights/archive/contents.ts";
import type { Clock } from "../../../platform/kernel/clock.ts";
import type { InferenceCall } from "../inference-call.ts";
import type { ServedWhole, Settled } from "../served-answer.ts";

/** Stores prompts and answers for workspaces that keep them. */
export interface ContentPort {
  /**
   * Returns the wall time, in milliseconds, since which the caller's workspace keeps contents;
   * undefined where it does not, or where the workspace or the key forbids it.
   */
  keptSinceMs(caller: LlmKeyCaller): number | undefined;
  /** The most bytes of pictures and sound that are kept of a request, and of an answer. */
  readonly mediaBytesMax: number;
  /** Takes a content; never blocks. */
  write(content: Content): void;
  /** Takes a content whose files are read later; resolves once they are. Never rejects. */
  writeLate(content: LateContent): Promise<void>;
}

/** A whole answer with the request that it answers. */
interface WholeContent extends Pick<ServedWhole, "candidate" | "metered" | "answer"> {
  call: InferenceCall;
  streamed: boolean;
}

/** The dependencies of keeping contents. */
interface KeepingDependencies {
  contents?: ContentPort | undefined;
  clock: Clock;
}

const asksForZeroRetention = ({ provider }: InferenceCall["body"]): boolean =>
  typeof provider === "object" && provider !== null && "zdr" in provider && provider.zdr === true;

/** Returns whether a request asks for zero data retention, or for its answer not to be stored. */
export const asksForNone = (body: InferenceCall["body"]): boolean =>
  asksForZeroRetention(body) || body["store"] === false;

/** Returns whether a request, its key or its workspace requires zero data retention. */
export const requiresZeroRetention = (
  { privacyOf }: { privacyOf(caller: LlmKeyCaller): { zdr: boolean } },
  { body, caller }: Pick<InferenceCall, "body" | "caller">,
): boolean => asksForZeroRetention(body) || privacyOf(caller).zdr;

/**
 * Returns since when contents are kept for a request's workspace; undefined where this request is
 * not to be kept.
 */
export const keptSinceMs = (
  { contents }: KeepingDependencies,
  call: InferenceCall,
): number | undefined =>
  contents === undefined ||
  (call.surface !== "chat" && call.keptForm === undefined) ||
  asksForNone(call.body)
    ? undefined
    : contents.keptSinceMs(call.caller);

/**
 * Keeps the prompt and the answer of a settled request, where its workspace keeps them. Files of the
 * request are read later, and freed in any case.
 */
export function keepContent(
  deps: KeepingDependencies,
  { call, streamed }: Pick<WholeContent, "call" | "streamed">,
  answer: () => KeptText,
): void {
  const { keptForm } = call;
  // Asked again at settlement, since it may have been turned off during the request.
  const sinceMs = keptSinceMs(deps, call);
  if (sinceMs === undefined || deps.contents === undefined) return freeKept(call);
  const content = {
    generationId: call.generationId,
    workspaceId: call.caller.workspace.id,
    keyId: call.caller.key.id,
    // Where the clock was set back, the content still counts as created while contents were kept.
    createdAtMs: Math.max(sinceMs, deps.clock.nowMs()),
    surface: call.recordedAs,
    streamed,
    answer: answer(),
  };
  if (keptForm === undefined)
    return deps.contents.write({
      ...content,
      request: keptText(call.text, deps.contents.mediaBytesMax),
    });
  const characters = content.answer.text.length;
  const read = async (): Promise<Content> => ({
    ...content,
    request: await keptForm.readRequest(),
  });
  void deps.contents.writeLate({ characters, read }).finally(() => freeKept(call));
}

/** Frees the files of a request that were to be kept. */
export const freeKept = ({ keptForm }: InferenceCall): void => void keptForm?.free();

/**
 * Keeps a whole answer, where its workspace keeps contents. Answers with pictures or sound are kept
 * by their endpoint, which may change their form.
 */
export function keepAnswer(deps: KeepingDependencies, ended: WholeContent, settled: Settled): void {
  const { contents } = deps;
  if (contents !== undefined && ended.call.keptForm === undefined)
    keepContent(deps, ended, () => wholeKept({ ...ended, settled }, contents.mediaBytesMax));
}

/**
 * Returns a whole answer as its client gets it, without the members that the gateway adds about who
 * served it.
 */
const wholeKept = (
  {
    call,
    candidate,
    metered,
    answer,
    settled: { chargedNano, free, isByok },
  }: WholeContent & { settled: Settled },
  fileBytesMax: number,
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
    fileBytesMax,
  );

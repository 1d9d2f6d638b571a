import { tagNamePattern, type GenerationDetail } from "../../insights/generation-record.ts";
import { teamOfKey } from "../../identity/keys/caller.ts";
import type { InferenceDependencies } from "./execution.ts";
import type { CallOrigin, InferenceCall } from "./inference-call.ts";
import { requiresZeroRetention } from "./keep-content.ts";

/** The most characters that are kept of what a request says of its end user and its program. */
const senderCharactersMax = 256;

/** Returns a caller's text as it is kept, in one line; undefined for no text. */
function senderText(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const text = value
    .slice(0, senderCharactersMax)
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, "");
  return text === "" ? undefined : text;
}

/** Returns the end user that a request names. Chat and Responses have `metadata` for other things. */
function endUserOf({ body, recordedAs }: NotedCall): unknown {
  if (recordedAs !== "messages") return body["user"] ?? body["safety_identifier"];
  return (Object(body["metadata"]) as { user_id?: unknown }).user_id;
}

/** The most tags that are kept of a request. */
const tagsMax = 16;
/** The most characters that are kept of the value of a tag, as budgets count it. */
const tagCharactersMax = 200;

/** Returns the members of a request's metadata that name it, as they are kept; undefined for none. */
function tagsOf({ metadata }: NotedCall): Readonly<Record<string, string>> | undefined {
  if (metadata === undefined) return undefined;
  const tags = Object.entries(metadata).flatMap(([name, value]) => {
    // The end user of Messages has a place of its own.
    if (name === "user_id" || !tagNamePattern.test(name)) return [];
    const text = senderText(typeof value === "number" ? String(value) : value);
    return text === undefined ? [] : [[name, text.slice(0, tagCharactersMax)] as const];
  });
  return tags.length === 0 ? undefined : Object.fromEntries(tags.slice(0, tagsMax));
}

/** Notes whom a request is for, and its program, but not under zero data retention. */
function noteSender(
  deps: Pick<InferenceDependencies, "privacyOf">,
  { detail, call }: { detail: GenerationDetail; call: NotedCall },
): void {
  const externalUser = senderText(call.customer ?? endUserOf(call));
  const userAgent = senderText(call.userAgent);
  const tags = tagsOf(call);
  if (externalUser === undefined && userAgent === undefined && tags === undefined) return;
  if (requiresZeroRetention(deps, call)) return;
  if (externalUser !== undefined) detail.externalUser = externalUser;
  if (userAgent !== undefined) detail.userAgent = userAgent;
  if (tags !== undefined) detail.tags = tags;
}

/** The parts of a call that its record notes. */
export type NotedCall = CallOrigin & Pick<InferenceCall, "body" | "presetId" | "recordedAs">;

/** Notes where a request came from, as far as its caller said. */
export function noteOrigin(
  deps: Pick<InferenceDependencies, "privacyOf">,
  { detail, call }: { detail: GenerationDetail; call: NotedCall },
): void {
  const team = teamOfKey(call.caller);
  if (team !== undefined) detail.team = team;
  if (call.origin !== undefined) detail.origin = call.origin;
  if (call.appTitle !== undefined) detail.appTitle = call.appTitle;
  if (call.presetId !== undefined) detail.presetId = call.presetId;
  if (call.sessionId !== undefined) detail.sessionId = call.sessionId;
  if (call.batchId !== undefined) detail.batchId = call.batchId;
  if (call.roundOf !== undefined) detail.calledBy = call.roundOf;
  if (call.traceParent !== undefined) detail.traceParent = call.traceParent;
  const { trace } = call.body;
  if (trace !== undefined) detail.trace = trace;
  noteSender(deps, { detail, call });
}

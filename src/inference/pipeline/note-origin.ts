import type { GenerationDetail } from "../../insights/generation-record.ts";
import type { InferenceDependencies } from "./execution.ts";
import type { CallOrigin, InferenceCall } from "./inference-call.ts";

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

/** Notes the end user and the program of a request, but not under zero data retention. */
function noteSender(
  { privacyOf }: Pick<InferenceDependencies, "privacyOf">,
  { detail, call }: { detail: GenerationDetail; call: NotedCall },
): void {
  const externalUser = senderText(endUserOf(call));
  const userAgent = senderText(call.userAgent);
  if (externalUser === undefined && userAgent === undefined) return;
  const { zdr } = Object(call.body["provider"]) as { zdr?: unknown };
  if (zdr === true || privacyOf(call.caller).zdr) return;
  if (externalUser !== undefined) detail.externalUser = externalUser;
  if (userAgent !== undefined) detail.userAgent = userAgent;
}

/** The parts of a call that its record notes. */
export type NotedCall = CallOrigin & Pick<InferenceCall, "body" | "presetId" | "recordedAs">;

/** Notes where a request came from, as far as its caller said. */
export function noteOrigin(
  deps: Pick<InferenceDependencies, "privacyOf">,
  { detail, call }: { detail: GenerationDetail; call: NotedCall },
): void {
  if (call.origin !== undefined) detail.origin = call.origin;
  if (call.appTitle !== undefined) detail.appTitle = call.appTitle;
  if (call.presetId !== undefined) detail.presetId = call.presetId;
  if (call.sessionId !== undefined) detail.sessionId = call.sessionId;
  if (call.roundOf !== undefined) detail.calledBy = call.roundOf;
  if (call.traceParent !== undefined) detail.traceParent = call.traceParent;
  const { trace } = call.body;
  if (trace !== undefined) detail.trace = trace;
  noteSender(deps, { detail, call });
}

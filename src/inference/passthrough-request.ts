import { editMembers, scanMembers } from "../platform/lib/json-members.ts";
import type { ReasoningLevels } from "./catalog/model.ts";
import { maxOutputTokensOf, wantsStream, type ChatCall } from "./chat-call.ts";
import { chatGatewayFields } from "./dialects/openai-chat/request-schema.ts";
import type { Candidate } from "./routing/candidate.ts";

const effortOrder = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/**
 * The effort that is sent: the nearest lower level that the model declares, the lowest when all are higher,
 * its default for a tier nobody knows. `none` is never clamped, and a model that declares no levels gets
 * what the caller sent (contract, reasoning rules 1, 3 and 4).
 */
export function clampEffort(effort: string, declared: ReasoningLevels | undefined): string | undefined {
  if (effort === "none" || declared === undefined || declared.levels.includes(effort)) return effort;
  const rank = effortOrder.indexOf(effort);
  if (rank < 0) return declared.default;
  const lower = declared.levels.filter((level) => effortOrder.indexOf(level) <= rank && level !== "none");
  return lower.at(-1) ?? declared.levels.find((level) => level !== "none") ?? declared.default;
}

/**
 * The body for a candidate that speaks the caller's dialect: the original text with only those members
 * replaced that have to change, so that fields nobody here knows arrive as they were sent.
 */
export function passthroughBody(call: ChatCall, { route, model }: Candidate): string {
  const { body } = call;
  const edits = new Map<string, string | undefined>([["model", JSON.stringify(route.upstreamModel)]]);
  for (const field of chatGatewayFields) if (field in body) edits.set(field, undefined);
  const effort = body["reasoning_effort"];
  if (typeof effort === "string") {
    const clamped = clampEffort(effort, route.reasoning ?? model.reasoning);
    if (clamped !== effort) edits.set("reasoning_effort", clamped === undefined ? undefined : JSON.stringify(clamped));
  }
  if (wantsStream(call) && !route.provider.quirks.noStreamOptions) {
    const options = body["stream_options"];
    const asked = typeof options === "object" && options !== null && (options as { include_usage?: unknown }).include_usage === true;
    if (!asked) edits.set("stream_options", withUsage(call, { isObject: typeof options === "object" && options !== null }));
  }
  renameMaxTokens(call, { edits, field: route.provider.quirks.maxTokensField });
  return editMembers(call.text, edits);
}

/** The stream options as the caller wrote them, with usage asked for. */
function withUsage({ text }: ChatCall, { isObject }: { isObject: boolean }): string {
  const options = isObject ? scanMembers(text).findLast(({ key }) => key === "stream_options") : undefined;
  if (options === undefined) return '{"include_usage":true}';
  return editMembers(text.slice(options.valueStart, options.valueEnd), new Map([["include_usage", "true"]]));
}

/** Some vendors know only one of the two names of the output cap. */
function renameMaxTokens(
  call: ChatCall,
  { edits, field }: { edits: Map<string, string | undefined>; field: "max_tokens" | "max_completion_tokens" | undefined },
): void {
  if (field === undefined) return;
  const other = field === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  const limit = maxOutputTokensOf(call);
  if (!(other in call.body) || limit === undefined) return;
  edits.set(other, undefined);
  edits.set(field, String(limit));
}

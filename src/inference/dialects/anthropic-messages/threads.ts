import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Loss } from "../../canonical/request.ts";
import type { PreviousAnswers, TargetRoute } from "../shared/exchange.ts";
import { asObject, asString } from "../shared/wire-fields.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The error codes of Anthropic's threads that the gateway answers itself (@anthropic-ai/sdk 1.14). */
type ThreadErrorCode = "thread_unsupported_request" | "thread_not_found";

/** Returns whether a request continues a conversation that its provider holds. */
export const continuesThread = (body: Fields): boolean =>
  asObject(body["thread"])?.["type"] === "continue";

/** Returns the ids of earlier answers that a request refers to, each once. */
export function previousMessageIds(body: Fields): string[] {
  const ids = [body["thread"], body["diagnostics"]]
    .map((value) => asString(asObject(value)?.["previous_message_id"]))
    .filter((id) => id !== undefined);
  return [...new Set(ids)];
}

/**
 * Returns the refusal of a thread that cannot be held here. Anthropic's clients send the whole
 * conversation without `thread` when they read this code, and name `unsupported` to their user.
 */
export const unsupportedThread = (unsupported: string, why: string): GatewayError =>
  threadError("thread_unsupported_request", {
    message: `thread: ${why} Leave thread out and send the whole conversation.`,
    unsupported: [unsupported],
  });

/** Returns the refusal of an answer that cannot be continued; clients start a new thread. */
const threadNotFound = (id: string): GatewayError =>
  threadError("thread_not_found", {
    message: `thread.previous_message_id: ${id} is no answer of this workspace that the provider holds. Send the whole conversation.`,
  });

function threadError(
  code: ThreadErrorCode,
  { message, unsupported }: { message: string; unsupported?: readonly string[] },
): GatewayError {
  return new GatewayError(code === "thread_not_found" ? "not_found" : "bad_request", message, {
    param: "thread",
    metadata: { details: { error_code: code, ...(unsupported !== undefined && { unsupported }) } },
  });
}

/** Throws where a request needs a conversation that only a provider of this dialect may hold. */
export function refuseThread({ thread }: Fields): void {
  if (thread !== undefined && thread !== null)
    throw unsupportedThread("model", "the provider of this model holds no conversations.");
}

/**
 * Returns the members that refer to earlier answers, with the provider's own ids in place of the
 * gateway's. Throws where the provider holds no conversations, or not this one.
 */
export function providerReferences(
  { body, previousAnswers }: { body: Fields; previousAnswers?: PreviousAnswers | undefined },
  { provider }: Pick<TargetRoute["route"], "provider">,
): { edits: readonly (readonly [string, string])[]; losses: readonly Loss[] } {
  const thread = asObject(body["thread"]);
  const diagnostics = asObject(body["diagnostics"]);
  if (thread === undefined && diagnostics === undefined) return { edits: [], losses: [] };
  if (thread !== undefined && provider.deviations.messageThreads !== true) refuseThread(body);
  const ownId = (id: unknown): string | undefined => {
    const answer = typeof id === "string" ? previousAnswers?.get(id) : undefined;
    return answer?.providerId === provider.id ? answer.upstreamId : undefined;
  };
  const edits: (readonly [string, string])[] = [];
  const losses: Loss[] = [];
  if (thread !== undefined && continuesThread(body)) {
    const id = ownId(thread["previous_message_id"]);
    if (id === undefined) throw threadNotFound(String(thread["previous_message_id"]));
    edits.push(["thread", JSON.stringify({ ...thread, previous_message_id: id })]);
  }
  const compared = diagnostics?.["previous_message_id"];
  if (typeof compared === "string") {
    const id = ownId(compared) ?? null;
    edits.push(["diagnostics", JSON.stringify({ ...diagnostics, previous_message_id: id })]);
    if (id === null)
      losses.push({
        field: "diagnostics.previous_message_id",
        reason: "the answer is not one of this provider to this workspace",
      });
  }
  return { edits, losses };
}

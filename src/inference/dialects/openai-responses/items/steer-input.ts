import { z } from "zod";
import type { JsonObject } from "../../../canonical/json.ts";

const part = z.looseObject({ type: z.enum(["input_text", "input_image", "input_file"]) });
const inputSchema = z.union([
  z.string().min(1),
  z
    .array(
      z.looseObject({
        type: z.literal("message").optional(),
        role: z.literal("user"),
        content: z.union([z.string(), z.array(part)]),
      }),
    )
    .min(1),
]);

/** Returns the items of the input of `response.steer`; undefined where it is no message of a user. */
export function steerItems(sent: unknown): readonly JsonObject[] | undefined {
  const { data } = inputSchema.safeParse(sent);
  if (typeof data !== "string") return data as JsonObject[] | undefined;
  return [{ type: "message", role: "user", content: [{ type: "input_text", text: data }] }];
}

/** The item by which a client answers a call, for each type of call. */
const answers: Readonly<Record<string, string>> = {
  function_call: "function_call_output",
  custom_tool_call: "custom_tool_call_output",
  computer_call: "computer_call_output",
  local_shell_call: "local_shell_call_output",
  shell_call: "shell_call_output",
  apply_patch_call: "apply_patch_call_output",
};

const approvalRequest = "mcp_approval_request";

/**
 * Returns stubs of the items that a client has to send before a conversation can be continued: one
 * for each call that nothing has answered.
 */
export function requiredInput(
  conversation: readonly Readonly<Record<string, unknown>>[],
): Record<string, unknown>[] {
  const answered = new Set(
    conversation
      .filter(({ type }) => /_(?:output|response)$/.test(String(type)))
      .map(({ call_id: callId, approval_request_id: approvalId }) => callId ?? approvalId),
  );
  return conversation.flatMap(({ type, call_id: callId, id, name }): Record<string, unknown>[] => {
    if (type === approvalRequest)
      return answered.has(id) ? [] : [{ type: "mcp_approval_response", approval_request_id: id }];
    const answer = answers[String(type)];
    if (answer === undefined || answered.has(callId)) return [];
    const stub = { type: answer, call_id: callId };
    return [type === "function_call" ? { ...stub, name } : stub];
  });
}

/** Matches an event that begins a call. */
const callPattern =
  /"response\.output_item\.added".{0,400}"type":"(?:\w+_call|mcp_approval_request)"/;

/** Returns whether events contain the beginning of a call that the client may have to answer. */
export const beginsCall = (frames: string): boolean =>
  frames.includes('"response.output_item.added"') && callPattern.test(frames);

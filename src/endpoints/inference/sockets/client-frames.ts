import { itemsOfInput } from "../../../inference/responses/conversation.ts";
import type { ResponseItem } from "../../../inference/responses/stored-response.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { editMembers } from "../../../platform/kernel/json/json-members.ts";

/** A `response.create` frame. */
export interface CreateFrame {
  type: "create";
  /** The body of the request, without what belongs to the frame. */
  text: string;
  streamId: string | undefined;
  generates: boolean;
  previousId: string | undefined;
}

/** A frame of a client, or why it is none. */
export type ClientFrame =
  | CreateFrame
  | { type: "steer"; responseId: string; input: unknown }
  | { type: "ignored" }
  | { error: GatewayError; streamId: string | undefined };

const invalid = (
  message: string,
  { param, streamId }: { param?: string; streamId?: string | undefined } = {},
): ClientFrame => ({
  error: new GatewayError("bad_request", message, param === undefined ? {} : { param }),
  streamId,
});

const streamIdPattern = /^[\x20-\x7e]{1,256}$/;

/** Reads a frame of the Responses dialect (OpenAI, "WebSocket mode"). */
export function readFrame(sent: string | Uint8Array): ClientFrame {
  if (typeof sent !== "string") return invalid("Frames have to be text with JSON, not binary.");
  let fields: unknown;
  try {
    fields = JSON.parse(sent);
  } catch {
    return invalid("The frame is not valid JSON.");
  }
  if (typeof fields !== "object" || fields === null || Array.isArray(fields))
    return invalid("The frame has to be a JSON object.");
  return frameOf(sent, fields as Record<string, unknown>);
}

function frameOf(text: string, fields: Record<string, unknown>): ClientFrame {
  const { type, stream_id: streamId, previous_response_id: previousId } = fields;
  if (streamId !== undefined && !(typeof streamId === "string" && streamIdPattern.test(streamId)))
    return invalid("stream_id: must be a text of 1 to 256 characters", { param: "stream_id" });
  switch (type) {
    case "response.create":
      return createFrame(text, { ...fields, streamId });
    case "response.steer":
      if (typeof previousId !== "string")
        return invalid("previous_response_id: is required and must be the id of a response", {
          param: "previous_response_id",
        });
      return { type: "steer", responseId: previousId, input: fields["input"] };
    // Codex (0.169) confirms each response.
    case "response.processed":
      return { type: "ignored" };
    default: {
      const message = "type: must be response.create or response.steer";
      return invalid(message, { param: "type", streamId });
    }
  }
}

/** What belongs to a frame and not to its request, and how every answer is given. */
const requestEdits = new Map<string, string | undefined>([
  ["type", undefined],
  ["event_id", undefined],
  ["stream_id", undefined],
  ["generate", undefined],
  ["background", undefined],
  ["stream", "true"],
]);

function createFrame(
  text: string,
  fields: Record<string, unknown> & { streamId: string | undefined },
): ClientFrame {
  const { streamId, generate = true, background, previous_response_id: previousId } = fields;
  if (typeof generate !== "boolean")
    return invalid("generate: must be true or false", { param: "generate", streamId });
  if (background === true) {
    const message = "background: is not offered over a WebSocket; send the request as HTTP.";
    return invalid(message, { param: "background", streamId });
  }
  return {
    type: "create",
    text: editMembers(text, requestEdits),
    streamId,
    generates: generate,
    previousId: typeof previousId === "string" ? previousId : undefined,
  };
}

/**
 * Returns a frame that continues a response: with the settings of another one and new input, or with
 * the input before that frame's own.
 */
export function continued(
  frame: CreateFrame,
  {
    responseId,
    input,
    before = false,
  }: { responseId: string; input: readonly ResponseItem[]; before?: boolean },
): CreateFrame {
  const { input: own } = JSON.parse(frame.text) as { input?: unknown };
  const items = before ? [...input, ...itemsOfInput(own)] : input;
  return {
    ...frame,
    generates: true,
    previousId: responseId,
    text: editMembers(
      frame.text,
      new Map([
        ["input", JSON.stringify(items)],
        ["previous_response_id", JSON.stringify(responseId)],
      ]),
    ),
  };
}

/** Returns the JSON text of an event with the id of its lane, where it has one. */
export const withStreamId = (data: string, streamId: string | undefined): string =>
  streamId === undefined
    ? data
    : `${data.slice(0, data.lastIndexOf("}"))},"stream_id":${JSON.stringify(streamId)}}`;

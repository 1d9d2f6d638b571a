import { fixtureText, plainUsage } from "./openai-chat-fixtures.ts";
import { type BodyStep, sse } from "./steps.ts";
import type { UpstreamWire } from "./upstream-wire.ts";

const event = (type: string, fields: Record<string, unknown> = {}): BodyStep =>
  sse({ type, ...fields }, { event: type });

const message = { id: "msg_fixture", type: "message", role: "assistant", model: "fixture-model" };

const usage = (outputTokens: number): Record<string, number> => ({
  input_tokens: plainUsage.prompt_tokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: outputTokens,
});

const stop = { stop_reason: "end_turn", stop_sequence: null };
const noStop = { stop_reason: null, stop_sequence: null };

const error = (text: string, type: string): Record<string, unknown> => ({
  type: "error",
  error: { type, message: text },
  request_id: "req_fixture",
});

/** Anthropic's form of the default answer. */
export const anthropicMessagesWire: UpstreamWire = {
  dialect: "anthropic-messages",
  opening: [
    event("message_start", { message: { ...message, content: [], ...noStop, usage: usage(1) } }),
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  ],
  content: ["Hel", "lo ", "wörld 😀"].map((text) =>
    event("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  ),
  finish: [
    event("content_block_stop", { index: 0 }),
    event("message_delta", { delta: stop, usage: usage(plainUsage.completion_tokens) }),
  ],
  terminator: [event("message_stop")],
  failure: [sse(error("The fixture failed.", "api_error"), { event: "error" })],
  whole: {
    ...message,
    content: [{ type: "text", text: fixtureText }],
    ...stop,
    usage: usage(plainUsage.completion_tokens),
  },
  errorBody: (status) =>
    error(
      `The fixture refused with ${status}.`,
      status < 500 ? "invalid_request_error" : "api_error",
    ),
};

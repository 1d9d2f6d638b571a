import { eventStreamMessage } from "./event-stream-message.ts";
import { fixtureText, plainUsage } from "./openai-chat-fixtures.ts";
import { type BodyStep, body } from "./steps.ts";
import type { UpstreamWire } from "./upstream-wire.ts";

/** Returns one event of a ConverseStream, framed. */
export const converseEvent = (name: string, payload: object): BodyStep =>
  body(eventStreamMessage(name, JSON.stringify(payload)));

/** The headers of a ConverseStream. */
export const converseHead = { "content-type": "application/vnd.amazon.eventstream" };

const usage = {
  inputTokens: plainUsage.prompt_tokens,
  outputTokens: plainUsage.completion_tokens,
  totalTokens: plainUsage.prompt_tokens + plainUsage.completion_tokens,
};
const metrics = { latencyMs: 12 };

/** Converse's form of the default answer. */
export const amazonConverseWire: UpstreamWire = {
  dialect: "amazon-converse",
  opening: [converseEvent("messageStart", { role: "assistant" })],
  content: ["Hel", "lo ", "wörld 😀"].map((text) =>
    converseEvent("contentBlockDelta", { contentBlockIndex: 0, delta: { text } }),
  ),
  finish: [
    converseEvent("contentBlockStop", { contentBlockIndex: 0 }),
    converseEvent("messageStop", { stopReason: "end_turn" }),
  ],
  terminator: [converseEvent("metadata", { usage, metrics })],
  failure: [converseEvent("exception:internalServerException", { message: "The fixture failed." })],
  whole: {
    output: { message: { role: "assistant", content: [{ text: fixtureText }] } },
    stopReason: "end_turn",
    usage,
    metrics,
  },
  errorBody: (status) => ({ message: `The fixture refused with ${status}.` }),
};

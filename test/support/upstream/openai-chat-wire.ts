import { chatChunks, chatCompletion, chatError } from "./openai-chat-fixtures.ts";
import { sse } from "./steps.ts";
import type { UpstreamWire } from "./upstream-wire.ts";

const events = chatChunks().map((chunk) => sse(chunk));

/** The default answer of `openai-chat-fixtures.ts`: role, three deltas, finish, usage, `[DONE]`. */
export const openaiChatWire: UpstreamWire = {
  dialect: "openai-chat",
  opening: events.slice(0, 1),
  content: events.slice(1, -2),
  finish: events.slice(-2),
  terminator: [sse("[DONE]")],
  failure: [sse(chatError("The fixture failed."))],
  whole: chatCompletion(),
  errorBody: (status) => chatError(`The fixture refused with ${status}.`),
};

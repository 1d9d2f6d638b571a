import { fixtureText, plainUsage } from "./openai-chat-fixtures.ts";
import { sse } from "./steps.ts";
import type { UpstreamWire } from "./upstream-wire.ts";

const usage = (candidatesTokenCount: number): Record<string, unknown> => ({
  usageMetadata: {
    promptTokenCount: plainUsage.prompt_tokens,
    candidatesTokenCount,
    totalTokenCount: plainUsage.prompt_tokens + candidatesTokenCount,
  },
  modelVersion: "fixture-model",
  responseId: "fixture",
});

const candidate = (text: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  candidates: [{ content: { role: "model", parts: [{ text }] }, index: 0, ...more }],
});

const stop = { finishReason: "STOP" };

/** Gemini's form of the default answer; it has neither an opening nor a terminator. */
export const googleGenerateWire: UpstreamWire = {
  dialect: "google-generate",
  opening: [],
  content: ["Hel", "lo ", "wörld 😀"].map((text, index) =>
    sse({ ...candidate(text), ...usage(index + 1) }),
  ),
  finish: [sse({ ...candidate("", stop), ...usage(plainUsage.completion_tokens) })],
  terminator: [],
  failure: [sse({ error: { code: 500, message: "The fixture failed.", status: "INTERNAL" } })],
  whole: { ...candidate(fixtureText, stop), ...usage(plainUsage.completion_tokens) },
  errorBody: (status) => ({
    error: { code: status, message: `The fixture refused with ${status}.`, status: "UNKNOWN" },
  }),
};

import { describe, expect, test } from "bun:test";
import { withMarkedPrompt } from "./marked-prompt.ts";
import type { Message } from "./message.ts";
import type { CanonicalRequest } from "./request.ts";

const text = (value: string, role: "system" | "user" | "assistant"): Message => ({
  role,
  parts: [{ type: "text", text: value }],
});

const request = (
  messages: readonly Message[],
  changes: Partial<CanonicalRequest> = {},
): CanonicalRequest => ({
  dialect: "openai-responses",
  model: "m",
  stream: false,
  messages,
  promptCaching: { key: "conversation" },
  ...changes,
});

/** Returns the places of the markers: indexes of messages. */
const markedIn = (given: CanonicalRequest): number[] =>
  withMarkedPrompt(given).messages.flatMap((message, index) =>
    "cache" in message || message.parts.some((part) => "cache" in part) ? [index] : [],
  );

describe("a prompt with a cache key", () => {
  const conversation = [text("Be kind.", "system"), text("Now.", "system"), text("Hi", "user")];

  test("is marked after its instructions and at its end", () => {
    expect(markedIn(request(conversation))).toEqual([1, 2]);
    const result: Message = { role: "tool", toolCallId: "x", parts: [{ type: "text", text: "1" }] };
    expect(markedIn(request([text("Hi", "user"), text("Hm", "assistant"), result]))).toEqual([2]);
  });

  test("has no marker on the beginning of the answer or on later instructions", () => {
    expect(markedIn(request([...conversation, text("So", "assistant")]))).toEqual([1, 2]);
    expect(markedIn(request([...conversation, text("Later.", "system")]))).toEqual([1, 2]);
  });

  test("stays as it is without a key, or with markers of its own", () => {
    const keyless = request(conversation);
    delete keyless.promptCaching;
    const marked: Message = {
      role: "user",
      parts: [{ type: "text", text: "Hi", cache: { ttl: "1h" } }],
    };
    for (const given of [keyless, request([text("Be kind.", "system"), marked])])
      expect(withMarkedPrompt(given)).toBe(given);
  });
});

import { describe, expect, test } from "bun:test";
import type { ShownAnswer } from "../interpretation.ts";
import { readMessage } from "./read-message.ts";

const metered = { usage: { inputTokens: 3, outputTokens: 2 }, estimated: false, clamped: false };
const shown: ShownAnswer = {
  id: "msg_gw",
  model: "acme/claude",
  metered,
  chargedNano: 5_000n,
  fallback: undefined,
  metadataText: () => "{}",
};
const message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "m",
  content: [{ type: "text", text: "Hi" }],
  stop_reason: "end_turn",
};

const read = (body: Record<string, unknown>): ReturnType<typeof readMessage> =>
  readMessage(JSON.stringify(body), body);

describe("a whole message", () => {
  test("is read for its settlement", () => {
    expect(read({ ...message, usage: { input_tokens: 3, output_tokens: 2 } })).toMatchObject({
      upstreamId: "msg_1",
      finishReason: "end_turn",
      metered,
      outputCharacters: 2,
      hasContent: true,
      spentOnReasoning: false,
    });
  });

  test("goes on as it came, with the gateway's id, model and charge", () => {
    const text =
      '{"id":"msg_1", "x_foo" : [1e2],"model":"m","content":[{"type":"text","text":"\\u0041"}],' +
      '"usage":{"input_tokens":3,"output_tokens":2,"x":{}}}';
    expect(readMessage(text, JSON.parse(text) as object)?.render(shown)).toBe(
      '{"id":"msg_gw", "x_foo" : [1e2],"model":"acme/claude","content":[{"type":"text","text":"\\u0041"}],' +
        '"usage":{"input_tokens":3,"output_tokens":2,"x":{},"cost":0.000005}}',
    );
  });

  test("shows our count where the provider's cannot be true, and tells of a fallback", () => {
    const fallback = { requestedModel: "acme/large", reason: "timeout", attempts: [] };
    const answer = read({ ...message, usage: { input_tokens: -1, output_tokens: 2 } })?.render({
      ...shown,
      metered: { ...metered, clamped: true },
      fallback,
    });
    expect(JSON.parse(answer ?? "")).toMatchObject({
      usage: { input_tokens: 3, output_tokens: 2, cost: 0.000005 },
      requested_model: "acme/large",
      fallback: { used: true },
    });
  });

  const contents: [what: string, body: object, content: boolean, spent: boolean][] = [
    ["nothing", { content: [] }, false, false],
    ["nothing, refused", { content: [], stop_reason: "refusal" }, true, false],
    [
      "thoughts alone, cut",
      { content: [{ type: "thinking", thinking: "t" }], stop_reason: "max_tokens" },
      true,
      true,
    ],
    [
      "thoughts that only usage tells of, cut",
      {
        content: [],
        stop_reason: "max_tokens",
        usage: { output_tokens: 9, output_tokens_details: { thinking_tokens: 9 } },
      },
      true,
      true,
    ],
    ["thoughts alone, ended", { content: [{ type: "thinking", thinking: "t" }] }, false, false],
    [
      "a call",
      { content: [{ type: "tool_use", id: "a", name: "f", input: {} }], stop_reason: "tool_use" },
      true,
      false,
    ],
    [
      "a search under way",
      {
        content: [{ type: "server_tool_use", id: "a", name: "f", input: {} }],
        stop_reason: "pause_turn",
      },
      true,
      false,
    ],
  ];
  test.each(contents)("with %s", (_what, body, hasContent, spentOnReasoning) => {
    expect(read({ ...message, ...body })).toMatchObject({ hasContent, spentOnReasoning });
  });

  test("is none without content", () => {
    expect(read({ type: "error", error: {} })).toBeUndefined();
  });
});

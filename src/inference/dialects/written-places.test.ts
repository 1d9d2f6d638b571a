import { describe, expect, test } from "bun:test";
import type { DialectId } from "../canonical/dialect-id.ts";
import { clientDialects, upstreamDialects } from "./index.ts";

type Body = Record<string, unknown>;

/** Encodes a client's request for a chat or a Messages provider, which refuse different parts. */
function encode(client: DialectId, body: Body, upstream: DialectId) {
  const request = clientDialects[client]?.decodeRequest({ model: "m", ...body });
  if (request === undefined) throw new Error(`clients do not speak ${client}`);
  return upstreamDialects[upstream].encodeRequest(request, {
    upstreamModel: "m",
    stream: false,
    providerId: "acme",
  });
}

const upload = { type: "image", source: { type: "file", file_id: "file_1" } };
const sound = { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } };
const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };

describe("a refused part is named where its client wrote it", () => {
  test.each<[name: string, client: DialectId, body: Body, upstream: DialectId, param: string]>([
    [
      "Messages: the instructions count as no message",
      "anthropic-messages",
      {
        max_tokens: 9,
        system: "Be brief.",
        messages: [
          { role: "user", content: "a" },
          { role: "assistant", content: "b" },
          { role: "user", content: [{ type: "text", text: "c" }, upload] },
        ],
      },
      "openai-chat",
      "messages[2].content[1]",
    ],
    [
      "Messages: results of tools stand in the user's message",
      "anthropic-messages",
      {
        max_tokens: 9,
        messages: [
          { role: "user", content: "a" },
          { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "t" }, upload] },
        ],
      },
      "openai-chat",
      "messages[2].content[1]",
    ],
    [
      "Responses: items are counted, not turns",
      "openai-responses",
      {
        instructions: "Be brief.",
        input: [
          { role: "user", content: "a" },
          { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
          { type: "function_call", call_id: "c2", name: "f", arguments: "{}" },
          { type: "function_call_output", call_id: "c1", output: "1" },
          { type: "function_call_output", call_id: "c2", output: "2" },
          { role: "user", content: [{ type: "input_text", text: "b" }, sound] },
        ],
      },
      "anthropic-messages",
      "input[5].content[1]",
    ],
    [
      "Responses: a tool's result",
      "openai-responses",
      {
        input: [
          { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
          {
            type: "function_call_output",
            call_id: "c",
            output: [{ type: "input_image", file_id: "file_1" }],
          },
        ],
      },
      "anthropic-messages",
      "input[1].output[0]",
    ],
    [
      "chat: results that the gateway adds count as no message",
      "openai-chat",
      {
        messages: [
          { role: "user", content: "a" },
          { role: "assistant", content: null, tool_calls: [call] },
          { role: "user", content: [{ type: "text", text: "never mind" }, sound] },
        ],
      },
      "anthropic-messages",
      "messages[2].content[1]",
    ],
  ])("%s", (_, client, body, upstream, param) => {
    expect(() => encode(client, body, upstream)).toThrow(
      expect.objectContaining({
        code: "unsupported_content",
        param,
        message: expect.stringContaining(`${param} `) as string,
      }),
    );
  });
});

test("a lost part is named where its client wrote it", () => {
  const { losses } = encode(
    "openai-responses",
    {
      instructions: "Be brief.",
      input: [
        { role: "user", content: "a" },
        { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] },
        { role: "assistant", content: "b" },
        { type: "web_search_call", id: "ws_1" },
        { role: "user", content: "c" },
      ],
    },
    "anthropic-messages",
  );
  expect(losses.map(({ field }) => field)).toEqual(["input[1]", "input[3]"]);
});

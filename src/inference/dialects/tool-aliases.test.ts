import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../canonical/json.ts";
import type { CanonicalRequest } from "../canonical/request.ts";
import type { StreamPart } from "../canonical/response.ts";
import { amazonConverse } from "./amazon-converse/index.ts";
import { anthropicMessages } from "./anthropic-messages/index.ts";
import { legalName, ToolNamer, unwrapInput, wrapInput } from "./shared/tools.ts";

describe("legalName", () => {
  test("keeps valid names", () => {
    for (const name of ["f", "get_weather", "a-b", "x".repeat(64)])
      expect(legalName(name, 64)).toBe(name);
  });

  test("makes other names valid, short, distinct and deterministic", () => {
    const names = [
      "files.read",
      "files:read",
      "файл",
      "x".repeat(65),
      `${"x".repeat(64)}y`,
      "",
      "a b",
    ];
    const legal = names.map((name) => legalName(name, 64));
    for (const name of legal) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(new Set(legal).size).toBe(names.length);
    expect(names.map((name) => legalName(name, 64))).toEqual(legal);
  });
});

test("ToolNamer keeps aliases only for changed names", () => {
  const namer = new ToolNamer({ maxLength: 64, wrapsCustom: true });
  expect(namer.wireName({ kind: "function", name: "f" })).toBe("f");
  expect(namer.wireName({ kind: "custom", name: "p" })).toBe("p");
  expect(namer.wireName({ kind: "function", name: "f", namespace: "ns" })).toBe("ns__f");
  expect([...namer.aliases]).toEqual([
    ["p", { name: "p", unwrapsInput: true }],
    ["ns__f", { name: "f", namespace: "ns" }],
  ]);
});

test("unwrapInput restores wrapped input, and returns other text unchanged", () => {
  for (const input of ["", '*** Begin "Patch"\n', "{}"])
    expect(unwrapInput(wrapInput(input))).toBe(input);
  for (const text of ["plain", "{}", "null", '{"input":1}', '{"inp'])
    expect(unwrapInput(text)).toBe(text);
});

describe("members of arguments with names that Claude does not take", () => {
  const call = { type: "tool-call", kind: "function", id: "c", name: "find" } as const;
  const request: CanonicalRequest = {
    dialect: "openai-chat",
    model: "m",
    stream: true,
    messages: [
      { role: "user", parts: [{ type: "text", text: "Go." }] },
      { role: "assistant", parts: [{ ...call, arguments: '{"filter[id]":1,"b":{"c[]":2}}' }] },
      { role: "tool", toolCallId: "c", parts: [{ type: "text", text: "none" }] },
    ],
    tools: [
      {
        type: "function",
        name: "find",
        parameters: {
          type: "object",
          properties: { "filter[id]": { type: "number" }, b: { type: "object" } },
          required: ["filter[id]"],
        },
      },
    ],
  };
  const pieces = ['{"fil', "ter_id_", '":', " 7", ',"b":{"filter_id_":', '"x"}', "}"];
  const restored = '{"filter[id]": 7,"b":{"filter_id_":"x"}}';
  const event = (type: string, fields: object) => ({
    event: type,
    data: JSON.stringify({ type, ...fields }),
  });
  const upstreams = [
    {
      upstream: anthropicMessages,
      sent: ({ tools, messages }: JsonObject): unknown[] => [
        (tools as JsonObject[])[0]?.["input_schema"],
        ((messages as JsonObject[])[1]?.["content"] as JsonObject[])[0]?.["input"],
      ],
      events: [
        event("content_block_start", {
          index: 0,
          content_block: { type: "tool_use", id: "t", name: "find", input: {} },
        }),
        ...pieces.map((partial_json) =>
          event("content_block_delta", {
            index: 0,
            delta: { type: "input_json_delta", partial_json },
          }),
        ),
        event("message_delta", { delta: { stop_reason: "tool_use" } }),
      ],
      whole: (input: object) => ({
        content: [{ type: "tool_use", id: "t", name: "find", input }],
        stop_reason: "tool_use",
      }),
    },
    {
      upstream: amazonConverse,
      sent: ({ toolConfig, messages }: JsonObject): unknown[] => {
        const [tool] = (toolConfig as { tools: { toolSpec: { inputSchema: JsonObject } }[] }).tools;
        const content = (messages as JsonObject[])[1]?.["content"] as { toolUse: JsonObject }[];
        return [tool?.toolSpec.inputSchema["json"], content[0]?.toolUse["input"]];
      },
      events: [
        event("contentBlockStart", {
          contentBlockIndex: 0,
          start: { toolUse: { toolUseId: "t", name: "find" } },
        }),
        ...pieces.map((input) =>
          event("contentBlockDelta", { contentBlockIndex: 0, delta: { toolUse: { input } } }),
        ),
        event("messageStop", { stopReason: "tool_use" }),
      ],
      whole: (input: object) => ({
        output: { message: { content: [{ toolUse: { toolUseId: "t", name: "find", input } }] } },
        stopReason: "tool_use",
      }),
    },
  ];

  test.each(upstreams.map((row) => [row.upstream.id, row] as const))(
    "have others at %s, and their own in answers",
    (_, { upstream, sent, events, whole }) => {
      const options = { upstreamModel: "claude-opus-4-7", stream: true, providerId: "p" };
      const { body, toolAliases } = upstream.encodeRequest(request, options);
      expect(sent(body)).toEqual([
        {
          type: "object",
          properties: { filter_id_: { type: "number" }, b: { type: "object" } },
          required: ["filter_id_"],
        },
        { filter_id_: 1, b: { "c[]": 2 } },
      ]);
      const decoder = upstream.createStreamDecoder({ toolAliases });
      const parts: StreamPart[] = events.flatMap((each) => decoder.decode(each));
      const told = parts.flatMap((part) =>
        part.type === "tool-call-delta" ? [part.arguments] : [],
      );
      expect(told.join("")).toBe(restored);
      expect("skipsCalls" in decoder && decoder.skipsCalls).toBeFalsy();
      const input = { filter_id_: 7, b: { filter_id_: "x" } };
      expect(upstream.decodeResponse(whole(input), { toolAliases }).choices[0]?.parts).toEqual([
        { ...call, id: "t", arguments: '{"filter[id]":7,"b":{"filter_id_":"x"}}' },
      ]);
    },
  );
});

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../canonical/json.ts";
import type { AssistantPart, Message } from "../../canonical/message.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import type { DialectDeviations } from "../deviations.ts";
import type { EncodedRequest, EncodeRequestOptions } from "../dialect.ts";
import { encodeRequest } from "./encode-request.ts";

/** A request as another dialect's client would have sent it. */
const encode = (
  fields: Partial<CanonicalRequest>,
  deviations: DialectDeviations = {},
  options: Partial<EncodeRequestOptions> = {},
): EncodedRequest =>
  encodeRequest(
    { dialect: "anthropic-messages", model: "claude", stream: false, messages: [], ...fields },
    { upstreamModel: "large-v2", stream: false, providerId: "acme", deviations, ...options },
  );
const input = (messages: Message[], deviations: DialectDeviations = {}): unknown =>
  encode({ messages }, deviations).body.input;
const text = (value: string): { type: "text"; text: string } => ({ type: "text", text: value });
const call = (id: string): AssistantPart => ({
  type: "tool-call",
  kind: "function",
  id,
  name: "f",
  arguments: "",
});
const wireCall = (id: string): JsonObject => ({
  type: "function_call",
  call_id: id,
  name: "f",
  arguments: "{}",
});

test("a request stores nothing", () => {
  expect(encode({}).body).toEqual({ model: "large-v2", input: [], store: false });
});

// OpenAI answers 400 where it is asked for the encrypted reasoning of a model that has none.
describe("encrypted reasoning is asked for", () => {
  const seals = ["reasoning.encrypted_content"];

  test.each<[name: string, request: Partial<CanonicalRequest>, reasons: boolean]>([
    ["of a model that reasons", {}, true],
    ["with an effort", { reasoning: { effort: "low" } }, false],
    ["with a budget", { reasoning: { budgetTokens: 2_000 } }, false],
    ["with a summary", { reasoning: { summary: "auto" } }, false],
  ])("%s", (_, request, reasons) => {
    expect(encode(request, {}, { reasons }).body).toHaveProperty("include", seals);
  });

  test.each<[name: string, request: Partial<CanonicalRequest>]>([
    ["not of another model", {}],
    ["not if reasoning is off", { reasoning: { effort: "none" } }],
    ["not if it is only hidden", { reasoning: { exclude: true } }],
  ])("%s", (_, request) => {
    expect(encode(request).body).not.toHaveProperty("include");
  });
});

describe("instructions", () => {
  test("at the start are one text without another vendor's accounting line; later ones stay in place", () => {
    expect(
      encode({
        messages: [
          { role: "system", parts: [text("x-anthropic-billing-header: v=1"), text("Be brief.")] },
          { role: "system", developer: true, parts: [text("Be kind.")] },
          { role: "user", parts: [text("Hi")] },
          { role: "system", parts: [text("Now rhyme.")] },
        ],
      }).body,
    ).toMatchObject({
      instructions: "Be brief.\n\nBe kind.",
      input: [
        { type: "message", role: "user", content: "Hi" },
        { type: "message", role: "system", content: "Now rhyme." },
      ],
    });
  });

  test("stay in parts if the upstream supports cache markers", () => {
    const { body } = encode(
      { messages: [{ role: "system", parts: [{ ...text("a"), cache: {} }, text("b")] }] },
      { cacheMarkers: "prompt_cache_breakpoint" },
    );
    expect(body.input).toEqual([
      {
        type: "message",
        role: "system",
        content: [
          { type: "input_text", text: "a", prompt_cache_breakpoint: { mode: "explicit" } },
          { type: "input_text", text: "b" },
        ],
      },
    ]);
  });
});

describe("calls and results", () => {
  test("have one result per call, right after its turn", () => {
    expect(
      input([
        { role: "assistant", parts: [text("a"), call("c1"), call("c2")] },
        { role: "tool", toolCallId: "c1", isError: true, parts: [text("broke")] },
        { role: "tool", toolCallId: "zz", parts: [text("whose?")] },
      ]),
    ).toEqual([
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "a" }] },
      wireCall("c1"),
      wireCall("c2"),
      { type: "function_call_output", call_id: "c1", output: "Error: broke" },
      { type: "function_call_output", call_id: "c2", output: "Error: (no result)" },
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "Result of the tool call zz:" },
          { type: "input_text", text: "whose?" },
        ],
      },
    ]);
  });

  test("may have images in results, and text only as text", () => {
    expect(
      input([
        { role: "assistant", parts: [call("c1"), call("c2")] },
        {
          role: "tool",
          toolCallId: "c1",
          parts: [
            text("see"),
            { type: "image", source: { type: "base64", mediaType: "image/png", data: "AAAA" } },
          ],
        },
        { role: "tool", toolCallId: "c2", parts: [text("a"), text("b")] },
      ]),
    ).toMatchObject([
      {},
      {},
      {
        output: [
          { type: "input_text", text: "see" },
          { type: "input_image", image_url: "data:image/png;base64,AAAA" },
        ],
      },
      { output: "a\nb" },
    ]);
  });

  test("have long names shortened and restored", () => {
    const name = `mcp__${"x".repeat(140)}`;
    const { body, toolAliases } = encode({
      tools: [{ type: "function", name, parameters: { type: "object" } }],
    });
    const [tool] = body.tools as { name: string; parameters: unknown; strict: boolean }[];
    expect(tool?.name.length).toBeLessThanOrEqual(128);
    expect(toolAliases.get(tool?.name ?? "")).toEqual({ name });
    expect(tool).toMatchObject({ parameters: { type: "object", properties: {} }, strict: false });
  });

  test("wrap custom tools only if the upstream lacks them", () => {
    const tools = [
      {
        type: "custom",
        name: "patch",
        format: { type: "grammar", syntax: "lark", definition: "start: x" },
      },
    ] as const;
    expect(encode({ tools }).body.tools).toEqual([{ ...tools[0] }]);
    const wrapped = encode(
      {
        tools,
        messages: [
          {
            role: "assistant",
            parts: [{ type: "tool-call", kind: "custom", id: "c", name: "patch", arguments: "x" }],
          },
        ],
      },
      { customTools: false },
    );
    expect(wrapped.body).toMatchObject({
      tools: [{ type: "function", name: "patch" }],
      input: [
        { type: "function_call", arguments: '{"input":"x"}' },
        { type: "function_call_output" },
      ],
    });
  });

  test("group namespaces again", () => {
    const { body, losses } = encodeRequest(
      {
        dialect: "openai-responses",
        model: "m",
        stream: false,
        messages: [],
        tools: [
          {
            type: "function",
            name: "g",
            namespace: "ns",
            deferred: true,
            extensions: {
              dialect: "openai-responses",
              fields: { namespace_description: "Group." },
            },
          },
          { type: "function", name: "h", namespace: "ns" },
          { type: "hosted", dialect: "openai-responses", value: { type: "tool_search" } },
        ],
      },
      { upstreamModel: "m", stream: false, providerId: "acme" },
    );
    expect(losses).toEqual([]);
    expect(body.tools).toEqual([
      {
        type: "namespace",
        name: "ns",
        description: "Group.",
        tools: [
          { type: "function", name: "g", parameters: null, defer_loading: true },
          { type: "function", name: "h", parameters: null },
        ],
      },
      { type: "tool_search" },
    ]);
  });
});

describe("reasoning", () => {
  const turn = (part: AssistantPart): Message[] => [
    { role: "assistant", parts: [part, text("a")] },
  ];
  const rows: [
    what: string,
    part: AssistantPart,
    deviations: DialectDeviations,
    item: JsonObject | undefined,
  ][] = [
    [
      "encrypted by the provider itself",
      {
        type: "reasoning",
        id: "rs_1",
        summary: ["s"],
        encrypted: "e",
        provenance: { providerId: "acme" },
      },
      {},
      {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "s" }],
        encrypted_content: "e",
      },
    ],
    [
      "encrypted by another provider",
      { type: "reasoning", encrypted: "e", provenance: { providerId: "other" } },
      {},
      undefined,
    ],
    ["encrypted by an unknown provider", { type: "reasoning", encrypted: "e" }, {}, undefined],
    [
      "signed",
      { type: "reasoning", text: "t", signature: "s", provenance: { providerId: "acme" } },
      {},
      undefined,
    ],
    [
      "readable, if the upstream requires it",
      { type: "reasoning", id: "rs_1", text: "t" },
      { reasoningReplay: "content" },
      { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "t" }] },
    ],
    ["readable, for others", { type: "reasoning", text: "t" }, {}, undefined],
    ["only an id", { type: "reasoning", id: "rs_1" }, { reasoningReplay: "content" }, undefined],
  ];
  test.each(rows)("%s", (_what, part, deviations, item) => {
    const { body, losses } = encode({ messages: turn(part) }, deviations);
    const items = (body.input as JsonObject[]).filter((one) => one.type === "reasoning");
    expect(items).toEqual(item === undefined ? [] : [item]);
    expect(losses.map((loss) => loss.field)).toEqual(
      item === undefined ? ["messages[0].content[0]"] : [],
    );
  });

  const efforts: [CanonicalRequest["reasoning"], JsonObject | undefined][] = [
    [{ effort: "low" }, { effort: "low" }],
    [{ enabled: false }, { effort: "none" }],
    [
      { enabled: true, display: "summarized" },
      { effort: "high", summary: "auto" },
    ],
    [{ budgetTokens: 4_000 }, { effort: "medium" }],
    [{ exclude: true }, undefined],
  ];
  test.each(efforts)("%j is sent as %j", (reasoning, wire) => {
    expect(encode({ ...(reasoning && { reasoning }) }).body.reasoning).toEqual(wire as JsonObject);
  });
});

describe("unsupported requests are refused:", () => {
  const rows: [Partial<CanonicalRequest>, string][] = [
    [{ choiceCount: 2 }, "n"],
    [{ modalities: ["text", "audio"] }, "modalities"],
    [
      {
        messages: [
          { role: "user", parts: [{ type: "image", source: { type: "file", fileId: "f" } }] },
        ],
      },
      "messages[0].content[0]",
    ],
    [
      {
        messages: [
          {
            role: "user",
            parts: [
              { type: "opaque", dialect: "anthropic-messages", value: { type: "search_result" } },
            ],
          },
        ],
      },
      "messages[0].content[0]",
    ],
  ];
  test.each(rows)("%j: %s", (fields, param) => {
    expect(() => encode(fields)).toThrow(
      expect.objectContaining({ code: "unsupported_content", param }),
    );
  });
});

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { AssistantPart, Message, UserPart } from "../../canonical/message.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import type { DialectDeviations } from "../deviations.ts";
import type { EncodedRequest } from "../dialect.ts";
import { encodeRequest } from "./encode-request.ts";

/** A request as another dialect's client would have sent it. */
const translated = (fields: Partial<CanonicalRequest>): CanonicalRequest => ({
  dialect: "anthropic-messages",
  model: "claude",
  stream: false,
  messages: [],
  ...fields,
});

const encode = (
  fields: Partial<CanonicalRequest>,
  deviations: DialectDeviations = {},
  stream = false,
): EncodedRequest =>
  encodeRequest(translated(fields), {
    upstreamModel: "large-v2",
    stream,
    providerId: "acme",
    deviations,
  });

const wireMessages = (messages: Message[], deviations: DialectDeviations = {}): unknown =>
  encode({ messages }, deviations).body.messages;

const text = (value: string): { type: "text"; text: string } => ({ type: "text", text: value });
const user = (...parts: UserPart[]): Message => ({ role: "user", parts });
const assistant = (...parts: AssistantPart[]): Message => ({ role: "assistant", parts });
const call = (id: string, name = "f"): AssistantPart => ({
  type: "tool-call",
  kind: "function",
  id,
  name,
  arguments: "{}",
});
const wireCall = (id: string, name = "f"): JsonObject => ({
  id,
  type: "function",
  function: { name, arguments: "{}" },
});
const result = (id: string, value: string): Message => ({
  role: "tool",
  toolCallId: id,
  parts: [text(value)],
});

describe("instructions", () => {
  test("at the start are merged, without another vendor's accounting line", () => {
    expect(
      wireMessages([
        {
          role: "system",
          parts: [text("x-anthropic-billing-header: v=1; h=abc"), text("Be brief.")],
        },
        { role: "system", developer: true, parts: [text("Be kind.")] },
        user(text("Hi")),
      ]),
    ).toEqual([
      { role: "system", content: "Be brief.\n\nBe kind." },
      { role: "user", content: "Hi" },
    ]);
  });

  test("stay in parts if the upstream supports cache markers", () => {
    expect(
      wireMessages(
        [{ role: "system", parts: [{ ...text("a"), cache: { ttl: "1h" } }, text("b")] }],
        { cacheMarkers: "cache_control" },
      ),
    ).toEqual([
      {
        role: "system",
        content: [
          { type: "text", text: "a", cache_control: { type: "ephemeral", ttl: "1h" } },
          { type: "text", text: "b" },
        ],
      },
    ]);
  });

  const later: Message[] = [
    user(text("a")),
    { role: "system", developer: true, parts: [text("Now rhyme.")] },
    user(text("b")),
  ];
  test("within the conversation stay in place", () => {
    expect(wireMessages(later)).toEqual([
      { role: "user", content: "a" },
      { role: "system", content: "Now rhyme." },
      { role: "user", content: "b" },
    ]);
    expect(wireMessages(later, { developerRole: true })).toContainEqual({
      role: "developer",
      content: "Now rhyme.",
    });
  });

  test("within the conversation become user text if the upstream accepts them only first", () => {
    expect(wireMessages(later, { systemOnlyFirst: true })).toEqual([
      { role: "user", content: "a" },
      { role: "user", content: "<system-reminder>\nNow rhyme.\n</system-reminder>" },
      { role: "user", content: "b" },
    ]);
  });
});

describe("tool turns", () => {
  test("put images of results into the next user message, with a note in the result", () => {
    const { body, losses } = encode({
      messages: [
        assistant(call("a"), call("b")),
        {
          role: "tool",
          toolCallId: "a",
          parts: [
            text("Shot:"),
            { type: "image", source: { type: "base64", mediaType: "image/png", data: "AA==" } },
          ],
        },
        result("b", "done"),
        user(text("And now?")),
      ],
    });
    expect(body.messages).toEqual([
      { role: "assistant", content: null, tool_calls: [wireCall("a"), wireCall("b")] },
      { role: "tool", tool_call_id: "a", content: "Shot:\n[image 1 attached below]" },
      { role: "tool", tool_call_id: "b", content: "done" },
      {
        role: "user",
        content: [
          { type: "text", text: "[image 1, from the result of tool call a]" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
          { type: "text", text: "And now?" },
        ],
      },
    ]);
    expect(losses.map((loss) => loss.field)).toEqual(["messages[1].content[1]"]);
  });

  test("put images of the last results into a separate user message", () => {
    expect(
      wireMessages([
        assistant(call("a")),
        {
          role: "tool",
          toolCallId: "a",
          parts: [{ type: "image", source: { type: "url", url: "https://example.com/a.png" } }],
        },
      ]),
    ).toEqual([
      { role: "assistant", content: null, tool_calls: [wireCall("a")] },
      { role: "tool", tool_call_id: "a", content: "[image 1 attached below]" },
      {
        role: "user",
        content: [
          { type: "text", text: "[image 1, from the result of tool call a]" },
          { type: "image_url", image_url: { url: "https://example.com/a.png" } },
        ],
      },
    ]);
  });

  test("mark failed calls, answer calls without a result, and turn lone results into text", () => {
    expect(
      wireMessages([
        assistant(call("a"), call("b")),
        { role: "tool", toolCallId: "a", parts: [text("no disk")], isError: true },
        result("z", "stray"),
        user(text("Go on")),
      ]),
    ).toEqual([
      { role: "assistant", content: null, tool_calls: [wireCall("a"), wireCall("b")] },
      { role: "tool", tool_call_id: "a", content: "Error: no disk" },
      { role: "tool", tool_call_id: "b", content: "Error: (no result)" },
      {
        role: "user",
        content: [
          { type: "text", text: "Result of the tool call z:" },
          { type: "text", text: "stray" },
        ],
      },
      { role: "user", content: "Go on" },
    ]);
  });

  test("join the pieces of an answer, and separate several messages", () => {
    expect(
      wireMessages([
        assistant(text("It is "), text("sunny."), { ...text("Bye."), startsMessage: true }),
      ]),
    ).toEqual([{ role: "assistant", content: "It is sunny.\n\nBye." }]);
  });

  test("never have empty arguments", () => {
    expect(
      wireMessages([
        assistant({ type: "tool-call", kind: "function", id: "a", name: "f", arguments: "" }),
        result("a", ""),
      ]),
    ).toMatchObject([{ tool_calls: [wireCall("a")] }, { content: "" }]);
  });
});

describe("reasoning", () => {
  const thought: AssistantPart = {
    type: "reasoning",
    text: "hm",
    signature: "s",
    provenance: { providerId: "acme" },
  };
  const foreign: AssistantPart = { ...thought, provenance: { providerId: "other" } };

  test("is omitted if the upstream does not accept it", () => {
    expect(wireMessages([assistant(thought, text("a"))])).toEqual([
      { role: "assistant", content: "a" },
    ]);
  });

  test("is sent in the field that the upstream requires", () => {
    expect(
      wireMessages([assistant(thought, text("a"))], { reasoningReplay: "reasoning_content" }),
    ).toEqual([{ role: "assistant", content: "a", reasoning_content: "hm" }]);
    expect(wireMessages([assistant(thought, text("a"))], { reasoningReplay: "content" })).toEqual([
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
          { type: "text", text: "a" },
        ],
      },
    ]);
  });

  test("is returned with its signature only to its provider, without the gateway's mark", () => {
    expect(
      wireMessages([assistant(foreign, thought, text("a"))], {
        reasoningReplay: "reasoning_details",
      }),
    ).toEqual([
      {
        role: "assistant",
        content: "a",
        reasoning_details: [{ type: "reasoning.text", text: "hm", signature: "s", index: 0 }],
      },
    ]);
  });

  test("returns Gemini's call signature only to its provider", () => {
    const signed = (providerId: string): AssistantPart => ({
      type: "tool-call",
      kind: "function",
      id: "a",
      name: "f",
      arguments: "{}",
      signature: "sig",
      provenance: { providerId },
    });
    expect(wireMessages([assistant(signed("acme")), result("a", "x")])).toMatchObject([
      {
        tool_calls: [{ ...wireCall("a"), extra_content: { google: { thought_signature: "sig" } } }],
      },
      {},
    ]);
    expect(wireMessages([assistant(signed("other")), result("a", "x")])).toEqual([
      { role: "assistant", content: null, tool_calls: [wireCall("a")] },
      { role: "tool", tool_call_id: "a", content: "x" },
    ]);
  });

  const efforts: [
    what: string,
    reasoning: CanonicalRequest["reasoning"],
    effort: string | undefined,
  ][] = [
    ["no reasoning", undefined, undefined],
    ["an effort", { effort: "xhigh", budgetTokens: 50 }, "xhigh"],
    ["enabled with a budget", { enabled: true, budgetTokens: 1_024 }, "high"],
    ["disabled", { enabled: false }, "none"],
    ["a small budget", { budgetTokens: 1_000 }, "low"],
    ["a medium budget", { budgetTokens: 4_096 }, "medium"],
    ["a large budget", { budgetTokens: 100_000 }, "xhigh"],
    ["excluded reasoning", { exclude: true }, undefined],
  ];
  test.each(efforts)("gives the effort of %s", (_what, reasoning, effort) => {
    expect(encode({ ...(reasoning && { reasoning }) }).body.reasoning_effort).toBe(
      effort as string,
    );
  });

  test("is sent as an object to OpenRouter, with budget and exclude", () => {
    expect(
      encode({ reasoning: { budgetTokens: 2_000, exclude: true } }, { reasoningObject: true }).body
        .reasoning,
    ).toEqual({ max_tokens: 2_000, exclude: true });
  });
});

describe("content that the upstream cannot read is refused with its path:", () => {
  const rows: [what: string, part: UserPart][] = [
    ["an uploaded image", { type: "image", source: { type: "file", fileId: "file_1" } }],
    [
      "a document URL",
      { type: "document", source: { type: "url", url: "https://example.com/a.pdf" } },
    ],
    ["an uploaded document", { type: "document", source: { type: "file", fileId: "file_1" } }],
    [
      "a part of another dialect",
      { type: "opaque", dialect: "anthropic-messages", value: { type: "container_upload" } },
    ],
  ];
  test.each(rows)("%s", (_what, part) => {
    try {
      encode({ messages: [user(text("a"), part)] });
      throw new Error("was accepted");
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      expect([error.code, error.param]).toEqual(["unsupported_content", "messages[0].content[1]"]);
    }
  });
});

test("text documents are inlined", () => {
  expect(
    wireMessages([
      user(
        { type: "document", source: { type: "text", text: "Plain." }, title: "Notes" },
        { type: "document", source: { type: "parts", parts: [text("One"), text("Two")] } },
      ),
    ]),
  ).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: "Notes\nPlain." },
        { type: "text", text: "One" },
        { type: "text", text: "Two" },
      ],
    },
  ]);
});

test("usage is requested for every stream if the upstream supports it", () => {
  expect(encode({}, {}, true).body).toMatchObject({
    stream: true,
    stream_options: { include_usage: true },
  });
  expect(encode({}, { noStreamOptions: true }, true).body).toEqual({
    model: "large-v2",
    messages: [],
    stream: true,
  });
});

test("the output limit has the name that the upstream supports", () => {
  expect(encode({ maxOutputTokens: 5 }).body).toMatchObject({ max_tokens: 5 });
  expect(
    encode({ maxOutputTokens: 5 }, { maxTokensField: "max_completion_tokens" }).body,
  ).toMatchObject({ max_completion_tokens: 5 });
});

test("fields for the gateway are not sent", () => {
  const { body, losses } = encode({
    gateway: { models: ["b"], provider: { order: ["x"] }, sessionId: "s", trace: {} },
    metadata: { a: "b" },
    store: true,
    serviceTier: "standard_only",
    safetyIdentifier: "x",
  });
  expect(body).toEqual({ model: "large-v2", messages: [] });
  expect(losses.map(({ field }) => field)).toEqual(["safety_identifier", "service_tier"]);
});

test("later turns keep the bytes of earlier ones, for prompt caches", () => {
  const turns: Message[] = [
    { role: "system", parts: [text("S")] },
    user(text("1")),
    assistant({ type: "reasoning", text: "t" }, text("2"), call("a")),
    result("a", "3"),
    assistant(text("4")),
    user(text("5")),
    { role: "system", parts: [text("late")] },
    user(text("6")),
  ];
  let previous = "[";
  for (const size of [2, 4, 6, 8]) {
    const wire = JSON.stringify(wireMessages(turns.slice(0, size)));
    expect(wire.startsWith(previous)).toBe(true);
    previous = wire.slice(0, -1);
  }
});

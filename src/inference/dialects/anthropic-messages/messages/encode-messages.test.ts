import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../canonical/json.ts";
import type { AssistantPart, Message } from "../../../canonical/message.ts";
import type { CanonicalRequest } from "../../../canonical/request.ts";
import type { DialectDeviations } from "../../deviations.ts";
import { encodeRequest } from "../encode-request.ts";

const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });
const system = (text: string): Message => ({ role: "system", parts: [{ type: "text", text }] });
const model = (...parts: AssistantPart[]): Message => ({ role: "assistant", parts });
const text = (value: string): AssistantPart => ({ type: "text", text: value });
const call = (id: string, args = "{}"): AssistantPart => ({
  type: "tool-call",
  kind: "function",
  id,
  name: "f",
  arguments: args,
});
const result = (id: string, value: string): Message => ({
  role: "tool",
  toolCallId: id,
  parts: [{ type: "text", text: value }],
});

interface Wire {
  system?: unknown;
  messages: { role: string; content: unknown }[];
  losses: string[];
}

function encode(
  messages: Message[],
  options: {
    dialect?: CanonicalRequest["dialect"];
    deviations?: DialectDeviations;
    upstreamModel?: string;
  } = {},
): Wire {
  const { dialect = "openai-chat", deviations = {}, upstreamModel = "claude-opus-4-7" } = options;
  const { body, losses } = encodeRequest(
    { dialect, model: "m", stream: false, messages },
    {
      upstreamModel,
      stream: false,
      providerId: "anthropic",
      deviations,
    },
  );
  return { ...(body as unknown as Wire), losses: losses.map((loss) => loss.field) };
}

describe("conversation turns", () => {
  test("merge results of parallel calls and the next user text, results first (kosong#45)", () => {
    expect(
      encode([
        user("Both"),
        model(text("Looking."), call("a"), call("b")),
        result("a", "1"),
        result("b", "2"),
        user("And?"),
      ]).messages,
    ).toEqual([
      { role: "user", content: "Both" },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Looking." },
          { type: "tool_use", id: "a", name: "f", input: {} },
          { type: "tool_use", id: "b", name: "f", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: "1" },
          { type: "tool_result", tool_use_id: "b", content: "2" },
          { type: "text", text: "And?" },
        ],
      },
    ]);
  });

  test("add a result for a call without one, and turn a result without a call into text (cai#157)", () => {
    const { messages } = encode([
      user("Hi"),
      model(call("a")),
      user("Stop"),
      model(text("ok")),
      result("z", "late"),
    ]);
    expect(messages[2]?.content).toEqual([
      { type: "tool_result", tool_use_id: "a", content: "(no result)", is_error: true },
      { type: "text", text: "Stop" },
    ]);
    expect(messages[4]).toEqual({
      role: "user",
      content: [
        { type: "text", text: "Result of the tool call z:" },
        { type: "text", text: "late" },
      ],
    });
  });

  test("replace invalid ids by the same valid id in call and result (ClawRouter#17)", () => {
    const id = `functions.read_file:0|${"x".repeat(80)}`;
    const { messages } = encode([user("Hi"), model(call(id)), result(id, "1")]);
    const [use] = messages[1]?.content as JsonObject[];
    const [answer] = messages[2]?.content as JsonObject[];
    expect(use?.id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(use?.id).toBe(answer?.tool_use_id);
  });

  const inputs: [args: string, input: object][] = [
    ["", {}],
    [" ", {}],
    ['{"a":1}', { a: 1 }],
    ['{"a":', { _raw: '{"a":' }],
    ["[1]", { _raw: "[1]" }],
    ["null", { _raw: "null" }],
  ];
  test.each(inputs)("encode arguments %j as %j", (args, input) => {
    const [use] = encode([user("Hi"), model(call("a", args)), result("a", "1")]).messages[1]
      ?.content as JsonObject[];
    expect(use?.input as unknown).toEqual(input);
  });

  test("omit empty text and empty turns, and alternate (Portkey#995)", () => {
    expect(
      encode([
        user("Hi"),
        model(text(""), call("a")),
        result("a", ""),
        user(""),
        model(),
        model(text(" \n")),
        user("x"),
        user("y"),
      ]).messages,
    ).toEqual([
      { role: "user", content: "Hi" },
      { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: {} }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a" },
          { type: "text", text: "x" },
          { type: "text", text: "y" },
        ],
      },
    ]);
  });

  test("end a prefilled assistant turn without whitespace", () => {
    const turns = [user("Hi"), model(text("The answer is \n"))];
    const begun = { role: "assistant", content: "The answer is" };
    const older = encode(turns, { upstreamModel: "claude-sonnet-4-5" });
    expect([older.messages.at(-1), older.losses]).toEqual([begun, []]);
    const newer = encode(turns);
    expect(newer.messages.slice(1)).toEqual([begun, { role: "user", content: "Continue." }]);
    expect(newer.losses).toEqual(["messages[1]"]);
  });

  test("send lone instructions as the user's, and start with the user", () => {
    expect(encode([system("Be brief.")])).toMatchObject({
      messages: [{ role: "user", content: "Be brief." }],
    });
    expect(encode([system("Be brief.")])).not.toHaveProperty("system");
    expect(encode([model(text("Welcome!")), user("Hi")]).messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "user",
    ]);
  });

  test("turn several leading instructions into blocks", () => {
    expect(
      encode([system("a"), { ...system("b"), developer: true } as Message, user("Hi")]).system,
    ).toEqual([
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ]);
  });

  test("keep a later instruction in place, and the bytes of earlier turns (opencodex#4148)", () => {
    const turns = [
      system("Be brief."),
      user("One"),
      model(text("1")),
      system("Now rhyme."),
      user("Two"),
    ];
    const prefixOf = (length: number): string =>
      JSON.stringify(encode(turns.slice(0, length)).messages.slice(0, 2));
    expect(encode(turns).system).toBe("Be brief.");
    expect(encode(turns).messages[2]).toEqual({
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>\nNow rhyme.\n</system-reminder>" },
        { type: "text", text: "Two" },
      ],
    });
    expect(new Set([3, 4, 5].map(prefixOf)).size).toBe(1);
  });

  test("send images with the media type of their bytes", () => {
    const image = (mediaType: string, data: string): unknown => {
      const { messages } = encode([
        { role: "user", parts: [{ type: "image", source: { type: "base64", mediaType, data } }] },
      ]);
      return ((messages[0]?.content as JsonObject[])[0]?.source as JsonObject).media_type;
    };
    expect([
      image("image/jpeg", "iVBORw0KGgo="),
      image("image/png", "AAAA"),
      image("image/heic", "/9j/4AAQ"),
    ]).toEqual(["image/png", "image/png", "image/jpeg"]);
  });

  test("decode base64 text files to text", () => {
    const source = {
      type: "base64",
      mediaType: "text/markdown",
      data: Buffer.from("# Łódź").toString("base64"),
    } as const;
    const { messages } = encode([
      { role: "user", parts: [{ type: "document", source, title: "notes" }] },
    ]);
    expect(messages[0]?.content).toEqual([
      {
        type: "document",
        source: { type: "text", media_type: "text/plain", data: "# Łódź" },
        title: "notes",
      },
    ]);
  });

  test("keep images in tool results", () => {
    const picture: Message = {
      role: "tool",
      toolCallId: "a",
      parts: [{ type: "image", source: { type: "url", url: "https://example.com/a.png" } }],
    };
    expect(encode([user("Hi"), model(call("a")), picture]).messages[2]?.content).toEqual([
      {
        type: "tool_result",
        tool_use_id: "a",
        content: [{ type: "image", source: { type: "url", url: "https://example.com/a.png" } }],
      },
    ]);
  });
});

describe("reasoning", () => {
  const thought = (fields: object): AssistantPart => ({ type: "reasoning", ...fields });
  const blocks = (part: AssistantPart, deviations?: DialectDeviations): unknown =>
    encode([user("Hi"), model(part, text("a")), user("b")], { ...(deviations && { deviations }) })
      .messages[1]?.content;

  test("is returned to its provider in place (litellm#23047)", () => {
    const provenance = { providerId: "anthropic" };
    const { messages, losses } = encode([
      user("Hi"),
      model(
        thought({ text: "1", signature: "s1", provenance }),
        call("a"),
        thought({ encrypted: "e2", provenance }),
        call("b"),
      ),
      result("a", "1"),
      result("b", "2"),
    ]);
    expect(messages[1]?.content).toEqual([
      { type: "thinking", thinking: "1", signature: "s1" },
      { type: "tool_use", id: "a", name: "f", input: {} },
      { type: "redacted_thinking", data: "e2" },
      { type: "tool_use", id: "b", name: "f", input: {} },
    ]);
    expect(losses).toEqual([]);
  });

  test("of another provider is omitted, never altered (claude-code#63269)", () => {
    expect(
      blocks(thought({ text: "t", signature: "s", provenance: { providerId: "google" } })),
    ).toBe("a");
    expect(
      encode([
        user("Hi"),
        model(thought({ encrypted: "e", provenance: { providerId: "openai" } })),
        user("b"),
      ]).losses,
    ).toEqual(["messages[1].content[0]"]);
  });

  test("without a signature is sent only to servers that require it", () => {
    expect(blocks(thought({ text: "t" }))).toBe("a");
    expect(blocks(thought({ summary: ["t", "u"] }), { reasoningReplay: "content" })).toEqual([
      { type: "thinking", thinking: "t\n\nu", signature: "" },
      { type: "text", text: "a" },
    ]);
  });
});

test("turns of a Messages client are kept unchanged", () => {
  const turns = [user("a"), user("b"), model(text("c")), model(text("d")), system("Now rhyme.")];
  const sent = (upstreamModel: string): unknown[] =>
    encode(turns, { dialect: "anthropic-messages", upstreamModel }).messages.map(
      ({ role, content }) => [role, content],
    );
  const before = [
    ["user", "a"],
    ["user", "b"],
    ["assistant", "c"],
    ["assistant", "d"],
  ];
  expect(sent("claude-opus-4-8")).toEqual([...before, ["system", "Now rhyme."]]);
  const reminder = "<system-reminder>\nNow rhyme.\n</system-reminder>";
  expect(sent("claude-opus-4-7")).toEqual([...before, ["user", reminder]]);
});

test("web search citations are returned only with their encrypted index", () => {
  const url = { type: "url", url: "https://example.com" } as const;
  const sealed = {
    ...url,
    extensions: { dialect: "anthropic-messages", fields: { encrypted_index: "ZQ" } },
  } as const;
  const { messages, losses } = encode([
    user("Hi"),
    model({ type: "text", text: "a", annotations: [sealed, url] }),
    user("b"),
  ]);
  expect(messages[1]?.content).toEqual([
    {
      type: "text",
      text: "a",
      citations: [
        {
          type: "web_search_result_location",
          url: "https://example.com",
          title: null,
          cited_text: "",
          encrypted_index: "ZQ",
        },
      ],
    },
  ]);
  expect(losses).toEqual(["messages[1].content[0].annotations"]);
});

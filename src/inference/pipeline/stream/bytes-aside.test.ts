import { expect, test } from "bun:test";
import { adaptIn, relayIn, routeIn } from "../../../../test/support/in-process.ts";
import type { DialectId } from "../../canonical/dialect-id.ts";
import { wholeText } from "../../../platform/kernel/frame-source.ts";
import { BytesAside } from "./bytes-aside.ts";

const picture = Buffer.alloc(120_000, "a picture of bytes that have no pattern?").toString(
  "base64",
);
const other = Buffer.alloc(90_000, "another").toString("base64");

/** Relays one event with `said`, and what ends its stream. Returns what the client is sent. */
async function relayed(dialect: DialectId, events: readonly object[]): Promise<string> {
  const asked =
    dialect === "openai-chat"
      ? { model: "acme/large", messages: [{ role: "user", content: "Hi" }], stream: true }
      : { model: "acme/large", contents: [{ role: "user", parts: [{ text: "Hi" }] }] };
  const adapter = adaptIn(dialect, { body: asked, route: routeIn(dialect) });
  const wire = Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
  const pieces = [];
  for (let at = 0; at < wire.length; at += 70_000) pieces.push(wire.subarray(at, at + 70_000));
  return (await relayIn(adapter, pieces)).text;
}

const chunk = (delta: object, finish: string | null = null): object => ({
  id: "up",
  object: "chat.completion.chunk",
  created: 1,
  model: "large-v2",
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const imageOf = (base64: string, index: number): object => ({
  type: "image_url",
  image_url: { url: `data:image/png;base64,${base64}` },
  index,
});

test.each([
  ["in one delta", { role: "assistant", images: [imageOf(picture, 0), imageOf(other, 1)] }],
  // Choices that lack what the contract asks for are written again.
  ["without a role", { images: [imageOf(picture, 0)], content: "Here." }],
  ["beside a call", { images: [imageOf(picture, 0)], tool_calls: [{ function: { name: "f" } }] }],
])("pictures of chat reach the client whole: %s", async (_, delta) => {
  const text = await relayed("openai-chat", [
    chunk(delta),
    { ...chunk({}, "stop"), usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } },
  ]);
  const [first] = text.split("\n\n");
  const shown = JSON.parse(first?.slice(6) ?? "") as { choices: [{ delta: object }] };
  const { images } = delta;
  expect(shown.choices[0].delta).toMatchObject({ images });
  expect(text).toContain('"cost"');
});

test("a picture that is written with the charge, one event later, reaches the client", async () => {
  const inlineData = { mimeType: "image/png", data: picture };
  const text = await relayed("google-generate", [
    { candidates: [{ content: { parts: [{ inlineData }] }, finishReason: "STOP", index: 0 }] },
  ]);
  expect(JSON.parse(text.slice(6))).toMatchObject({
    candidates: [{ content: { parts: [{ inlineData }] } }],
  });
});

test.each([
  ["a short one", { url: `data:image/png;base64,${"a".repeat(100)}`, more: " ".repeat(70_000) }],
  ["text", { data: "many words ".repeat(10_000) }],
  ["escapes", { data: "\\".repeat(70_000) }],
  ["a data URL within text", { content: `See data:image/png;base64,${picture}` }],
])("leaves alone what is no long base64: %s", (_, event) => {
  const data = JSON.stringify(event);
  expect(new BytesAside().take({ data })).toEqual({ event: { data }, isLighter: false });
});

test("events without their base64 are short, and get it back", () => {
  const aside = new BytesAside();
  const data = JSON.stringify([{ result: picture }, { partial_image_b64: other }]);
  const { event } = aside.take({ data });
  expect(event.data.length).toBeLessThan(200);
  expect(wholeText(aside.restore(`data: ${event.data}\n\n`))).toBe(`data: ${data}\n\n`);
});

/** Returns a text in pieces of this size. */
function cut(text: string, size: number): Buffer[] {
  const bytes = Buffer.from(text);
  const pieces = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  return pieces;
}

const url = (base64: string): string => `data:image/png;base64,${base64}`;

test.each([1_009, 16_384, 65_536, 100_000])(
  "base64 in pieces of %d bytes is set aside as bytes",
  (size) => {
    const data = JSON.stringify([
      { text: 'ä "quoted" \\', image_url: { url: url(picture) } },
      { result: other, more: "ü" },
      { data: picture },
    ]);
    const aside = new BytesAside();
    const text = aside.textWithout(cut(data, size)) ?? "";
    const isFound = aside.size / (2 * picture.length + other.length);
    expect(isFound).toBeGreaterThan(size < 100_000 ? 0.99 : 0.3);
    expect(text.length).toBeLessThan(data.length - aside.size + 200);
    expect(JSON.parse(text)).toBeArray();
    const frames = aside.restore(text);
    expect(wholeText(frames)).toBe(data);
    expect(aside.size).toBe(0);
  },
);

test("small pieces are sent together, and large ones as they came", () => {
  const data = JSON.stringify({ data: picture });
  for (const [size, most] of [
    [1_009, 3],
    [65_536, 5],
  ] as const) {
    const aside = new BytesAside();
    expect(aside.restore(aside.textWithout(cut(data, size)) ?? "").length).toBeLessThanOrEqual(
      most,
    );
  }
});

test.each([
  ["text", { data: "many words ".repeat(20_000) }],
  ["escapes", { data: "\\".repeat(70_000) }],
  ["text without spaces", { data: "語".repeat(70_000) }],
  ["another name", { content: picture }],
  ["a data URL within text", { content: `See ${url(picture)}` }],
  ["a name within text", { content: `"data":"${picture}"` }],
  ["another URL", { url: `https://a.example/${picture}` }],
  ["no end", undefined],
])("bytes of no long base64 stay: %s", (_, event) => {
  const data = event === undefined ? `{"data":"${picture}` : JSON.stringify(event);
  for (const size of [1_009, 16_384, 65_536])
    expect(new BytesAside().textWithout(cut(data, size))).toBeUndefined();
});

test.each(["\n\ndata: [DONE]\n\n", "\r"])(
  "bytes in which a line ends are no base64: %j",
  (lines) => {
    const [half, rest] = [picture.slice(0, 140_000), picture.slice(140_000)];
    const pieces = [`data: {"data":"${half.slice(0, 70_000)}`, half.slice(70_000), rest];
    const last = `${rest.slice(0, 5_000)}${lines}${rest.slice(5_000, 10_000)}"}\n`;
    const bytes = [...pieces, last].map((piece) => Buffer.from(piece));
    expect(new BytesAside().textWithout(bytes)).toBeUndefined();
  },
);

test("what may be shown again is kept, up to a bound", () => {
  const aside = new BytesAside();
  const base64 = "A".repeat(12 * 1024 * 1024);
  const texts = [1, 2, 3, 4].map(() => {
    const data = aside.textWithout(cut(JSON.stringify({ result: base64 }), 262_144)) ?? "";
    aside.keep({ data });
    expect(wholeText(aside.restore(data))).toContain(base64);
    return data;
  });
  expect(aside.size).toBe(2 * base64.length);
  expect(texts.map((text) => aside.textOf(text).length > base64.length)).toEqual([
    false,
    false,
    true,
    true,
  ]);
  expect(aside.textOf(texts[0] ?? "")).toBe('{"result":""}');
});

test("a stream of many pictures holds only those that were not sent", async () => {
  const route = routeIn("openai-chat");
  const body = { model: "acme/large", messages: [{ role: "user", content: "Hi" }], stream: true };
  const adapter = adaptIn("openai-chat", { body, route });
  const events = Array.from({ length: 50 }, (_, index) =>
    chunk({ images: [imageOf(picture, index)] }),
  );
  events.push(chunk({}, "stop"));
  const wire = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  const held: number[] = [];
  const { text } = await relayIn(adapter, cut(wire, 40_000), {
    next({ reader, relay }) {
      held.push(relay.aside?.size ?? 0);
      const event = reader.next();
      return event === undefined ? undefined : relay.accept(event);
    },
  });
  expect(text.split(picture)).toHaveLength(51);
  expect(Math.max(...held)).toBeLessThanOrEqual(picture.length);
  expect(Math.max(...held)).toBeGreaterThan(0);
});

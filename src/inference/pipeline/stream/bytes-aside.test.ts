import { expect, test } from "bun:test";
import { adaptIn, relayIn, routeIn } from "../../../../test/support/in-process.ts";
import type { DialectId } from "../../canonical/dialect-id.ts";
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
  expect(aside.restore(`data: ${event.data}\n\n`)).toBe(`data: ${data}\n\n`);
});

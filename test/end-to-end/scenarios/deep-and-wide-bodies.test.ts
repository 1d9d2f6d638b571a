import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { at } from "./support/at.ts";
import { readReply, saidIn, type ChatReply } from "./support/chat-reply.ts";
import { expectSoundBooks } from "./support/expect-sound-books.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await startScene();
});
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

const depth = 100_000;
const nested = "[".repeat(depth) + "]".repeat(depth);
const nestedObject = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

const send = async (text: string): Promise<ChatReply> =>
  readReply(await scene.gateway.post("/chat/completions", text));

test("10,000 messages are served in their order", async () => {
  const messages = Array.from({ length: 10_000 }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: `message ${index}`,
  }));
  const reply = await send(JSON.stringify(chatRequest({ messages })));
  expect([reply.status, saidIn(reply)]).toEqual([200, "Hello wörld 😀"]);
  expect(at(scene.acme.requests.at(-1)?.json(), "messages")).toEqual(messages);
});

/** A request with deep JSON in one of its fields. */
const withField = (field: string, value: string): string =>
  `${JSON.stringify(chatRequest({ stream: true })).slice(0, -1)},"${field}":${value}}`;

/**
 * Places for JSON that is nested 100,000 deep, and the status: served as it is where nobody here
 * reads it.
 */
const deepFields: readonly (readonly [place: string, text: string, status: number])[] = [
  ["an unknown field", withField("x_unknown", nested), 200],
  ["an unknown field, objects", withField("x_unknown", nestedObject), 200],
  [
    "a tool's schema",
    withField(
      "tools",
      `[{"type":"function","function":{"name":"f","parameters":${nestedObject}}}]`,
    ),
    200,
  ],
  ["metadata", withField("metadata", nestedObject), 200],
  [
    "a message's parts",
    `{"model":"acme/large","messages":[{"role":"user","content":${nested}}]}`,
    200,
  ],
  [
    "response_format",
    withField("response_format", `{"type":"json_schema","json_schema":${nestedObject}}`),
    200,
  ],
  ["trace, which is kept", withField("trace", nestedObject), 400],
  ["stream_options, which get a member", withField("stream_options", nestedObject), 200],
  ["provider, which is checked", withField("provider", nestedObject), 200],
  ["the whole body, an array", nested, 400],
  ["the whole body, unclosed", "[".repeat(depth), 400],
  ["the whole body, unclosed objects", '{"a":'.repeat(depth), 400],
];

describe("JSON that is nested 100,000 deep breaks nothing", () => {
  for (const [place, text, status] of deepFields) {
    test(place, async () => {
      const startedMs = performance.now();
      const reply = await send(text);
      expect([reply.status, at(reply.events[0], "error.metadata.fault")]).toEqual([
        status,
        status === 200 ? undefined : "client",
      ]);
      expect(performance.now() - startedMs).toBeLessThan(3_000);
      expect((await scene.gateway.get("/credits")).status).toBe(200);
    });
  }
});

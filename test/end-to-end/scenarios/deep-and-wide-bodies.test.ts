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

const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const nestedObject = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

const send = async (text: string): Promise<ChatReply> =>
  readReply(await scene.gateway.post("/chat/completions", text));

test("10,000 messages are sent in order", async () => {
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

/** Bodies with JSON of some depth, by where it stands. */
const deepBodies: readonly (readonly [place: string, text: (levels: number) => string])[] = [
  ["an unknown field", (levels) => withField("x_unknown", nested(levels))],
  ["an unknown field, objects", (levels) => withField("x_unknown", nestedObject(levels))],
  [
    "a tool's schema",
    (levels) =>
      withField(
        "tools",
        `[{"type":"function","function":{"name":"f","parameters":${nestedObject(levels)}}}]`,
      ),
  ],
  ["metadata", (levels) => withField("metadata", nestedObject(levels))],
  [
    "a message's parts",
    (levels) => `{"model":"acme/large","messages":[{"role":"user","content":${nested(levels)}}]}`,
  ],
  [
    "response_format",
    (levels) =>
      withField("response_format", `{"type":"json_schema","json_schema":${nestedObject(levels)}}`),
  ],
  ["trace, which is stored", (levels) => withField("trace", nestedObject(levels))],
  [
    "stream_options, which is extended",
    (levels) => withField("stream_options", nestedObject(levels)),
  ],
  ["provider, which is validated", (levels) => withField("provider", nestedObject(levels))],
];

describe("a body nested a thousand levels deep is accepted", () => {
  test.each(deepBodies)("%s", async (_, text) => {
    expect((await send(text(990))).status).toBe(200);
  });
});

describe("a body nested 100,000 levels deep returns 400", () => {
  test.each([
    ...deepBodies,
    ["the whole body, an array", nested] as const,
    ["the whole body, unclosed", (levels: number) => "[".repeat(levels)] as const,
    ["the whole body, unclosed objects", (levels: number) => '{"a":'.repeat(levels)] as const,
  ])("%s", async (_, text) => {
    const reply = await send(text(100_000));
    expect([reply.status, at(reply.events[0], "error.metadata.fault")]).toEqual([400, "client"]);
    expect((await scene.gateway.get("/credits")).status).toBe(200);
  });
});

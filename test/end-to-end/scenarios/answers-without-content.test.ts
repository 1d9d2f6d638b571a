import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { forgetFailuresOf } from "../../support/gateway.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import {
  chatChunks,
  chatCompletion,
  type StreamedChatAnswer,
} from "../../support/upstream/openai-chat-fixtures.ts";
import { json, split, sse, stream, type Script } from "../../support/upstream/steps.ts";
import {
  costsIn,
  errorsIn,
  finishesIn,
  readReply,
  saidIn,
  type ChatReply,
} from "./support/chat-reply.ts";
import { expectSoundBooks } from "./support/expect-sound-books.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";
import { settledRows } from "./support/settled-rows.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await startScene({ withBackup: true });
  scene.backup.script((request) => chatAnswer(request, { text: "from the backup" }));
});
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

const ask = async (script: Script, changes: Record<string, unknown>): Promise<ChatReply> => {
  scene.acme.script(script);
  forgetFailuresOf(scene.gateway, "acme");
  return readReply(await scene.gateway.post("/chat/completions", chatRequest(changes)));
};

const events = (answer: StreamedChatAnswer) =>
  stream([...chatChunks({ text: [], ...answer }).map((chunk) => sse(chunk)), sse("[DONE]")]);

/**
 * Answers that end well and say nothing. The provider may report usage; the caller does not pay
 * for it.
 */
const empty: readonly (readonly [name: string, streamed: boolean, script: Script])[] = [
  ["usage after the finish", true, events({})],
  ["usage after the finish, all in one segment", true, [split([], events({}))]],
  ["usage on the finish", true, events({ usageOn: "finish" })],
  ["usage on the finish, all in one segment", true, [split([], events({ usageOn: "finish" }))]],
  ["usage on every chunk, all in one segment", true, [split([], events({ usageOn: "every" }))]],
  ["no usage, all in one segment", true, [split([], events({ usageOn: "never" }))]],
  [
    "finish reason tool_calls without any tool call",
    true,
    [split([], events({ finishReason: "tool_calls" }))],
  ],
  ["no finish reason, only [DONE]", true, [split([], events({ finishReason: null }))]],
  ["whole with null content", false, json(chatCompletion({ text: null }))],
  ["whole with empty content", false, json(chatCompletion({ text: "" }))],
  ["whole without choices", false, json({ ...chatCompletion(), choices: [] })],
];

test("a whole answer of reasoning alone is an answer, as in a stream", async () => {
  const only = json(chatCompletion({ text: null, reasoning: "hm" }));
  const reply = await ask(only, { stream: false });
  expect([reply.status, saidIn(reply), errorsIn(reply)]).toEqual([200, "", []]);
});

describe("an answer without content counts as a provider failure: the next provider serves and is charged", () => {
  for (const [name, streamed, script] of empty) {
    test(name, async () => {
      const before = (await settledRows(scene.gateway)).length;
      const reply = await ask(script, { stream: streamed });
      expect([reply.status, saidIn(reply), errorsIn(reply)]).toEqual([200, "from the backup", []]);
      expect([costsIn(reply), reply.doneCount]).toEqual([[0.000032], streamed ? 1 : 0]);
      expect((await settledRows(scene.gateway)).slice(before)).toMatchObject([
        { provider: "backup", costNano: 32_000n },
      ]);
      expect(await scene.gateway.metrics.text()).not.toMatch(/open_streams -/);
    });
  }
});

/** Ends that tell the client something although nothing was said. */
const telling: readonly (readonly [
  name: string,
  streamed: boolean,
  finish: string,
  script: Script,
])[] = [
  ["output limit reached", true, "length", events({ finishReason: "length" })],
  [
    "output limit reached, all in one segment",
    true,
    "length",
    [split([], events({ finishReason: "length" }))],
  ],
  ["content filtered", true, "content_filter", events({ finishReason: "content_filter" })],
  [
    "output limit reached, whole",
    false,
    "length",
    json(chatCompletion({ text: "", finishReason: "length" })),
  ],
  [
    "content filtered, whole",
    false,
    "content_filter",
    json(chatCompletion({ text: null, finishReason: "content_filter" })),
  ],
];

describe("an answer without content but with a reason is delivered and charged", () => {
  for (const [name, streamed, finish, script] of telling) {
    test(name, async () => {
      const reply = await ask(script, { stream: streamed });
      expect([reply.status, finishesIn(reply), costsIn(reply)]).toEqual([
        200,
        [finish],
        [0.000016],
      ]);
      expect(reply.headers.get("x-service-provider-chain")).toBe("acme");
    });
  }
});

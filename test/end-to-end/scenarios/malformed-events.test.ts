import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { chatCompletion, fixtureText } from "../../support/upstream/openai-chat-fixtures.ts";
import { openaiChatWire as wire } from "../../support/upstream/openai-chat-wire.ts";
import { answer, sse, stream, type Script } from "../../support/upstream/steps.ts";
import { errorsIn, readReply, saidIn, type ChatReply } from "./support/chat-reply.ts";
import { expectSoundBooks } from "./support/expect-sound-books.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";
import { settledRow } from "./support/settled-rows.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await startScene({ withBackup: true });
  scene.backup.script((request) => chatAnswer(request, { text: "from the backup" }));
});
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

const ask = async (script: Script, changes: Record<string, unknown>): Promise<ChatReply> => {
  scene.acme.script(script);
  return readReply(await scene.gateway.post("/chat/completions", chatRequest(changes)));
};

/** Nesting that is deeper than any stack. */
const depth = 100_000;
const deep = "[".repeat(depth) + "]".repeat(depth);

/** Events that are JSON and no chunks. */
const oddEvents = [
  "{}",
  '{"id":5}',
  '{"choices":null}',
  '{"choices":"x"}',
  '{"choices":[null]}',
  '{"choices":[5]}',
  '{"choices":[{"delta":null}]}',
  '{"choices":[{"delta":"x"}]}',
  '{"choices":[{"delta":{"tool_calls":{}}}]}',
  '{"choices":[{"delta":{"tool_calls":[null]}}]}'.replace("[null]", "[]"),
  '{"choices":[{"delta":{"content":{"a":1}}}]}',
  '{"choices":[],"usage":5}',
  '{"choices":[],"usage":[]}',
  '{"x_groq":null}',
  "[]",
  "5",
  '"text"',
  "null",
  `{"choices":[],"extra":${deep}}`,
];

const nameOf = (text: string): string =>
  text.length > 80 ? `${text.slice(0, 40)}… nested ${depth} deep` : text;

describe("malformed events between valid ones are skipped", () => {
  for (const event of oddEvents) {
    test(nameOf(event), async () => {
      const odd = sse(event);
      const events = [
        ...wire.opening,
        odd,
        ...wire.content.flatMap((each) => [each, odd]),
        odd,
        ...wire.finish,
        ...wire.terminator,
      ];
      const reply = await ask(stream(events), { stream: true });
      expect([reply.status, saidIn(reply), errorsIn(reply), reply.doneCount]).toEqual([
        200,
        fixtureText,
        [],
        1,
      ]);
      expect(reply.headers.get("x-service-provider-chain")).toBe("acme");
    });
  }
});

describe("a stream of only malformed events falls back to the next provider", () => {
  for (const event of oddEvents) {
    test(nameOf(event), async () => {
      const reply = await ask(stream([sse(event), sse("[DONE]")]), { stream: true });
      expect([reply.status, saidIn(reply)]).toEqual([200, "from the backup"]);
    });
  }
});

describe("provider strings that are too long or unsafe to store", () => {
  const words = {
    "very long": "x".repeat(1_000_000),
    "with U+0000": "stop\u0000\u0007",
    "half a character": "stop\ud83d",
  };
  for (const [name, word] of Object.entries(words)) {
    for (const streamed of [false, true]) {
      test(`${name}, ${streamed ? "streamed" : "whole"}`, async () => {
        scene.acme.script((request) => chatAnswer(request, { id: word, finishReason: word }));
        const reply = await readReply(
          await scene.gateway.post("/chat/completions", chatRequest({ stream: streamed })),
        );
        expect([reply.status, saidIn(reply), errorsIn(reply)]).toEqual([200, fixtureText, []]);
        const row = await settledRow(scene.gateway, reply.headers.get("x-service-trace-id"));
        expect(row).toMatchObject({ status: "completed", costNano: 16_000n });
        expect((row?.finishReason ?? "").length).toBeLessThanOrEqual(200);
        expect(row?.finishReason).not.toContain("\u0000");
      });
    }
  }
});

/** Bodies of a whole answer that are JSON and no completions. */
const oddBodies = [
  "null",
  "5",
  '"text"',
  "[]",
  "{}",
  '{"choices":null}',
  '{"choices":"x"}',
  '{"choices":{}}',
  '{"choices":[null]}',
  '{"choices":[5]}',
  '{"choices":[{"message":null}]}',
  '{"choices":[{"message":"x"}]}',
  '{"choices":[{"message":{"content":5}}]}',
  '{"choices":[{"message":{"content":[null]}}]}',
  '{"choices":[{"message":{"tool_calls":{}}}]}',
];

describe("a malformed whole response falls back to the next provider", () => {
  for (const body of oddBodies) {
    for (const streamed of [false, true]) {
      test(`${streamed ? "for a stream: " : ""}${nameOf(body)}`, async () => {
        const reply = await ask(answer(body, { headers: { "content-type": "application/json" } }), {
          stream: streamed,
        });
        expect([reply.status, saidIn(reply)]).toEqual([200, "from the backup"]);
      });
    }
  }

  test("tool calls that are nested too deeply to count", async () => {
    const body = JSON.stringify(chatCompletion({ toolCalls: [{}] })).replace(
      '"tool_calls":[',
      `"tool_calls":[${deep},`,
    );
    const reply = await ask(answer(body, { headers: { "content-type": "application/json" } }), {});
    expect(reply.status).toBe(200);
  });
});

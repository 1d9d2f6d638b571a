import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { json, stream } from "../../support/upstream/steps.ts";
import { eventsOfWhole } from "./pairs/streamed-answer.ts";
import { chat } from "./pairs/upstream-heads.ts";
import type { ClientDialect } from "./support/client-dialect.ts";
import type { Fields } from "./support/json-value.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { allClients } from "./support/pairs.ts";
import type { Reply } from "./support/reply.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

const text: Fields = { role: "assistant", content: "So." };
const calls: Fields = {
  role: "assistant",
  content: null,
  tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: "{}" } }],
};

/** What compatible servers write, and how each client understands it. */
const words: readonly (readonly [word: string | null, message: Fields, finish: string])[] = [
  ["stop", text, "stop"],
  ["eos", text, "stop"],
  ["end_turn", text, "stop"],
  ["STOP", text, "stop"],
  ["", text, "stop"],
  [null, text, "stop"],
  ["done", text, "stop"],
  ["tool_calls", text, "stop"],
  ["max_tokens", text, "length"],
  ["MAX_TOKENS", text, "length"],
  ["stop", calls, "tool_calls"],
  ["", calls, "tool_calls"],
  [null, calls, "tool_calls"],
  ["tool_use", calls, "tool_calls"],
];

async function ask(
  client: ClientDialect,
  { answer, streamed }: { answer: Fields; streamed: boolean },
): Promise<Reply> {
  scene.upstreams["openai-chat"].script(
    streamed ? stream(eventsOfWhole("openai-chat", answer)) : json(answer),
  );
  return scene.ask(
    client,
    { ...client.ask("Go"), stream: streamed },
    { providers: [providerId("openai-chat")] },
  );
}

describe.each(allClients.map((client) => [client.name, client] as const))(
  "for a client of %s",
  (_, client) => {
    test.each(words)(
      "a chat provider's %p ends %o with %s, once, whole and streamed",
      async (word, message, finish) => {
        for (const streamed of [false, true]) {
          const reply = await ask(client, {
            answer: chat({ message, finish_reason: word }),
            streamed,
          });
          const { status, errors, endings } = reply;
          expect([streamed, status, errors, endings, reply.breaches, reply.finish]).toEqual([
            streamed,
            200,
            [],
            1,
            [],
            finish,
          ]);
        }
      },
    );

    const failures = ["error", "abort", "insufficient_system_resource"];
    test.each(failures)(
      "an answer that ends with finish reason %s is reported as an error",
      async (word) => {
        for (const streamed of [false, true]) {
          const reply = await ask(client, {
            answer: chat({ message: text, finish_reason: word }),
            streamed,
          });
          expect([streamed, reply.errors.length]).toEqual([streamed, 1]);
          if (client.name === "anthropic-messages")
            expect([reply.status, reply.breaches]).toEqual([streamed ? 200 : 502, []]);
        }
      },
    );
  },
);

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ScriptedDialect as DialectId } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json, stream } from "../../support/upstream/steps.ts";
import { eventsOfWhole } from "./pairs/streamed-answer.ts";
import { chat, gemini, response } from "./pairs/upstream-heads.ts";
import type { Fields } from "./support/json-value.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { allClients } from "./support/pairs.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

/** Answers with a call, where neither the call nor the answer has an id. */
const answers: Partial<Record<DialectId, Fields>> = {
  "openai-chat": {
    ...chat({
      message: {
        role: "assistant",
        content: null,
        tool_calls: [{ type: "function", function: { name: "look", arguments: "{}" } }],
      },
      finish_reason: "tool_calls",
    }),
    id: "",
  },
  "openai-responses": {
    ...response([{ type: "function_call", name: "look", arguments: "{}", status: "completed" }]),
    id: "",
  },
  "google-generate": {
    ...gemini([{ functionCall: { name: "look", args: {} } }], "STOP"),
    responseId: undefined,
  },
};

const rows = allClients.flatMap((client) =>
  (Object.entries(answers) as [DialectId, Fields][]).flatMap(([upstream, answer]) =>
    [false, true].map(
      (streamed) =>
        [
          `${client.name} -> ${upstream}, ${streamed ? "streamed" : "whole"}`,
          { client, upstream, answer, streamed },
        ] as const,
    ),
  ),
);

// What goes to its own dialect is kept as it came; Google's clients match calls by their names too.
const kept = (name: string) =>
  ["openai-responses", "google-generate"].some((each) => name.startsWith(`${each} -> ${each}`));

test.each(rows.filter(([name]) => !kept(name)))(
  "calls of two turns have different ids although the provider sends none: %s",
  async (_, { client, upstream, answer, streamed }) => {
    const ids: string[] = [];
    for (let turn = 0; turn < 2; turn += 1) {
      scene.upstreams[upstream].script(
        streamed ? stream(eventsOfWhole(upstream, answer)) : json(answer),
      );
      const reply = await scene.ask(
        client,
        { ...client.ask("Go"), stream: streamed },
        { providers: [providerId(upstream)] },
      );
      expect([reply.status, reply.breaches, reply.calls.length]).toEqual([200, [], 1]);
      ids.push(String(reply.calls[0]?.id));
    }
    expect(ids.every((id) => /^call_\w+_\d+$/.test(id))).toBe(true);
    expect(ids[0]).not.toBe(ids[1]);
  },
);

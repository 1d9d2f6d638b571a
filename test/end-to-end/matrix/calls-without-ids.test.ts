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

const repeated = { id: "call_0", type: "function", function: { name: "look", arguments: "{}" } };
const histories: Readonly<Record<string, Fields>> = {
  "openai-chat": {
    messages: [
      { role: "user", content: "Go" },
      { role: "assistant", content: null, tool_calls: [repeated] },
      { role: "tool", tool_call_id: "call_0", content: "1" },
    ],
  },
  "anthropic-messages": {
    messages: [
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "call_0", name: "look", input: {} }],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_0", content: "1" }] },
    ],
  },
  "openai-responses": {
    input: [
      { role: "user", content: "Go" },
      { type: "function_call", call_id: "call_0", name: "look", arguments: "{}" },
      { type: "function_call_output", call_id: "call_0", output: "1" },
    ],
  },
};

// Agents pair results with calls by their ids alone: with a second `call_0` they run the first again.
test.each(
  rows.filter(
    ([, { client, upstream }]) =>
      client.name in histories && upstream !== client.name && upstream !== "google-generate",
  ),
)("a call has another id than those before it: %s", async (_, { client, upstream, streamed }) => {
  const answer =
    upstream === "openai-chat"
      ? chat({
          message: { role: "assistant", content: null, tool_calls: [repeated] },
          finish_reason: "tool_calls",
        })
      : response([
          {
            type: "function_call",
            call_id: "call_0",
            name: "look",
            arguments: "{}",
            status: "completed",
          },
        ]);
  scene.upstreams[upstream].script(
    streamed ? stream(eventsOfWhole(upstream, answer)) : json(answer),
  );
  const body = { ...client.ask("Go"), ...histories[client.name], stream: streamed };
  const reply = await scene.ask(client, body, { providers: [providerId(upstream)] });
  expect([reply.status, reply.calls.map(({ id }) => id)]).toEqual([200, ["call_0_2"]]);
});

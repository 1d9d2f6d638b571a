import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ScriptedDialect as DialectId } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json, stream } from "../../support/upstream/steps.ts";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { eventsOfWhole } from "./pairs/streamed-answer.ts";
import { gemini, message, response } from "./pairs/upstream-heads.ts";
import type { ClientDialect, ClientName } from "./support/client-dialect.ts";
import { fieldsOf, listOf, type Fields } from "./support/json-value.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { clients } from "./support/pairs.ts";
import type { Reply } from "./support/reply.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

const call = { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" };
const tool = { name: "look", input_schema: { type: "object", properties: {} } };

/**
 * An upstream that seals its thoughts: a turn with a thought and a call, and the same turn as it
 * must come back.
 */
interface SealingUpstream {
  upstream: DialectId;
  answer: Fields;
  turnIn(request: Fields): unknown;
  turn: unknown;
}

const sealing: readonly SealingUpstream[] = [
  {
    upstream: "anthropic-messages",
    answer: message(
      [
        { type: "thinking", thinking: "Hm.", signature: "c2Vh" },
        { type: "redacted_thinking", data: "cmVk" },
        { type: "tool_use", id: "call_1", name: "look", input: {} },
      ],
      { stop_reason: "tool_use" },
    ),
    turnIn: ({ messages }) => listOf(messages)[1]?.content,
    turn: [
      { type: "thinking", thinking: "Hm.", signature: "c2Vh" },
      { type: "redacted_thinking", data: "cmVk" },
      { type: "tool_use", id: "call_1", name: "look", input: {} },
    ],
  },
  {
    upstream: "openai-responses",
    answer: response([
      {
        id: "rs_1",
        type: "reasoning",
        summary: [{ type: "summary_text", text: "Hm." }],
        encrypted_content: "c2Vh",
      },
      { id: "fc_1", ...call, status: "completed" },
    ]),
    turnIn: ({ input }) => listOf(input).slice(1, 3),
    turn: [{ type: "reasoning", encrypted_content: "c2Vh" }, call],
  },
  {
    upstream: "google-generate",
    answer: gemini(
      [
        { text: "Hm.", thought: true },
        { functionCall: { id: "call_1", name: "look", args: {} }, thoughtSignature: "c2Vh" },
      ],
      "STOP",
    ),
    turnIn: ({ contents }) => listOf(fieldsOf(listOf(contents)[1]).parts),
    turn: [{ functionCall: { id: "call_1", name: "look", args: {} }, thoughtSignature: "c2Vh" }],
  },
];

/**
 * The next request of a client: the turn as the client received it, the result of its call, and
 * nothing else.
 */
function nextRequest({ name }: ClientDialect<ClientName>, { body }: Reply): Fields {
  switch (name) {
    case "openai-chat":
      return {
        messages: [
          { role: "user", content: "Go" },
          fieldsOf(fieldsOf(listOf(body.choices)[0]).message),
          { role: "tool", tool_call_id: "call_1", content: "seen" },
        ],
        tools: [{ type: "function", function: { name: "look", parameters: tool.input_schema } }],
      };
    case "anthropic-messages":
      return {
        messages: [
          { role: "user", content: "Go" },
          { role: "assistant", content: body.content },
          {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: "call_1", content: "seen" }],
          },
        ],
        tools: [tool],
      };
    case "openai-responses":
      return {
        input: [
          { role: "user", content: "Go" },
          ...listOf(body.output),
          { type: "function_call_output", call_id: "call_1", output: "seen" },
        ],
        tools: [{ type: "function", name: "look", parameters: tool.input_schema }],
      };
  }
}

const rows = clients.flatMap((client) =>
  sealing.flatMap((each) =>
    [false, true].map(
      (streamed) =>
        [
          `${client.name} -> ${each.upstream}, ${streamed ? "streamed" : "whole"}`,
          { client, ...each, streamed },
        ] as const,
    ),
  ),
);

describe("sealed reasoning is returned unchanged to its provider and to no other", () => {
  test.each(rows)("%s", async (_, { client, upstream, answer, streamed, turnIn, turn }) => {
    const { messages: _messages, input: _input, ...bound } = client.ask("");
    scene.upstreams[upstream].script(
      streamed ? stream(eventsOfWhole(upstream, answer)) : json(answer),
    );
    const first = await scene.ask(
      client,
      { ...client.ask("Go"), stream: streamed },
      { providers: [providerId(upstream)] },
    );
    expect([first.status, first.finish, first.breaches]).toEqual([200, "tool_calls", []]);
    const next = { ...bound, ...nextRequest(client, first) };

    scene.upstreams[upstream].script(json(wireOf(upstream).whole));
    await scene.ask(client, next, { providers: [providerId(upstream)] });
    expect(turnIn(fieldsOf(scene.upstreams[upstream].requests.at(-1)?.json()))).toMatchObject(
      turn as object,
    );

    // Another provider would refuse the seal; but Anthropic's fit wherever Claude is served, and
    // native bytes are kept.
    if (client.name === upstream && upstream === "anthropic-messages") return;
    await scene.ask(client, next, { providers: [providerId(upstream, "hasty")] });
    const foreign = scene.upstreams[upstream].requests.at(-1)?.body ?? "";
    expect([foreign.includes("c2Vh"), foreign.includes("cmVk"), foreign.includes("gw1:")]).toEqual([
      false,
      false,
      false,
    ]);
    expect(foreign).toContain("call_1");
  });
});

/** A turn of a model that seals nothing, as DeepSeek, Qwen and their like think. */
const unsealed: SealingUpstream = {
  upstream: "openai-chat",
  answer: {
    id: "c1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [
      {
        index: 0,
        finish_reason: "tool_calls",
        message: {
          role: "assistant",
          content: null,
          reasoning_content: "Hm.",
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "look", arguments: "{}" } },
          ],
        },
      },
    ],
    usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
  },
  turnIn: () => undefined,
  turn: undefined,
};

const thinkers = [unsealed, ...sealing];
const moves = clients.flatMap((client) =>
  thinkers.flatMap((from) =>
    thinkers.flatMap((to) =>
      from.upstream === to.upstream
        ? []
        : [[`${client.name}: ${from.upstream} -> ${to.upstream}`, { client, from, to }] as const],
    ),
  ),
);

describe("a conversation that switches models keeps only reasoning that the new provider sealed", () => {
  test.each(moves)("%s", async (_, { client, from, to }) => {
    const { messages: _messages, input: _input, ...bound } = client.ask("");
    // The gateway keeps signatures by the ids of calls, so that each move has calls of its own.
    const id = `call_${client.name}_${from.upstream}_${to.upstream}`;
    const withId = (value: Fields): Fields =>
      JSON.parse(JSON.stringify(value).replaceAll("call_1", id)) as Fields;
    scene.upstreams[from.upstream].script(json(withId(from.answer)));
    const first = await scene.ask(client, client.ask("Go"), {
      providers: [providerId(from.upstream)],
    });
    expect([first.status, first.finish, first.breaches]).toEqual([200, "tool_calls", []]);
    scene.upstreams[to.upstream].script(json(wireOf(to.upstream).whole));
    await scene.ask(
      client,
      { ...bound, ...withId(nextRequest(client, first)) },
      { providers: [providerId(to.upstream)] },
    );
    const sent = scene.upstreams[to.upstream].requests.at(-1)?.body ?? "";
    expect(["c2Vh", "cmVk", "gw1:", '"thinking"'].filter((part) => sent.includes(part))).toEqual(
      [],
    );
    expect(sent).toContain(to.upstream === "google-generate" ? "look" : id);
  });
});

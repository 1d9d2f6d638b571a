import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ScriptedDialect as DialectId } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json, stream } from "../../support/upstream/steps.ts";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { eventsOfWhole } from "./pairs/streamed-answer.ts";
import { gemini, message, response } from "./pairs/upstream-heads.ts";
import type { ClientDialect } from "./support/client-dialect.ts";
import { fieldsOf, listOf, type Fields } from "./support/json-value.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { allClients } from "./support/pairs.ts";
import type { Reply } from "./support/reply.ts";
import { requestWith, turnsOf } from "./support/turns.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

const call = { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" };

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
        { type: "text", text: "I look." },
        { type: "redacted_thinking", data: "cmVk" },
        { type: "tool_use", id: "call_1", name: "look", input: {} },
      ],
      { stop_reason: "tool_use" },
    ),
    turnIn: ({ messages }) => listOf(messages)[1]?.content,
    turn: [
      { type: "thinking", thinking: "Hm.", signature: "c2Vh" },
      { type: "text", text: "I look." },
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
    // Google's own clients send back what they were shown too.
    turnIn: ({ contents }) =>
      listOf(fieldsOf(listOf(contents)[1]).parts).filter((part) => "functionCall" in part),
    turn: [{ functionCall: { id: "call_1", name: "look", args: {} }, thoughtSignature: "c2Vh" }],
  },
];

/**
 * Returns the next request of a client: the turn as the client received it, the result of its call,
 * and nothing else.
 */
function nextRequest(client: ClientDialect, { body }: Reply): Fields {
  const { user, answered, results } = turnsOf(client);
  const called = [{ id: "call_1", name: "look" }];
  return requestWith(client, [user("Go"), ...answered(body), ...results(called, "seen")]);
}

/** Dialects whose seals go to every provider of the dialect, as the client wrote them. */
const keepsBytes: readonly DialectId[] = ["anthropic-messages", "google-generate"];

/** Returns the seals of the answers here that a text contains, as they are or carried by the gateway. */
const sealsIn = (text: string): string[] =>
  ["c2Vh", "cmVk", "gw1:", "Z3cxO"].filter((seal) => text.includes(seal));

const rows = allClients.flatMap((client) =>
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
    scene.upstreams[upstream].script(
      streamed ? stream(eventsOfWhole(upstream, answer)) : json(answer),
    );
    const first = await scene.ask(
      client,
      { ...client.ask("Go"), stream: streamed },
      { providers: [providerId(upstream)] },
    );
    expect([first.status, first.finish, first.breaches]).toEqual([200, "tool_calls", []]);
    const next = nextRequest(client, first);

    scene.upstreams[upstream].script(json(wireOf(upstream).whole));
    await scene.ask(client, next, { providers: [providerId(upstream)] });
    expect(turnIn(fieldsOf(scene.upstreams[upstream].requests.at(-1)?.json()))).toMatchObject(
      turn as object,
    );

    // Another provider would refuse the seal; but Anthropic's fit wherever Claude is served, and
    // native bytes are kept.
    if (client.name === upstream && keepsBytes.includes(upstream)) return;
    await scene.ask(client, next, { providers: [providerId(upstream, "hasty")] });
    const foreign = scene.upstreams[upstream].requests.at(-1)?.body ?? "";
    expect(sealsIn(foreign)).toEqual([]);
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
const moves = allClients.flatMap((client) =>
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
    await scene.ask(client, withId(nextRequest(client, first)), {
      providers: [providerId(to.upstream)],
    });
    const sent = scene.upstreams[to.upstream].requests.at(-1)?.body ?? "";
    expect([sealsIn(sent), sent.includes('"thinking"')]).toEqual([[], false]);
    expect(sent).toContain(to.upstream === "google-generate" ? "look" : id);
  });
});

import { afterEach, describe, expect, test } from "bun:test";
import { body, end, head, sse, type BodyStep, type Step } from "../../support/upstream/steps.ts";
import { readReply } from "./support/chat-reply.ts";
import { startLeavingClient } from "./support/leaving-client.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";

let scene: Scene;
afterEach(() => scene.end());

const chunk = (fields: Record<string, unknown>): BodyStep =>
  sse({ id: "c", object: "chat.completion.chunk", model: "m", ...fields });
const delta = (fields: Record<string, unknown>, finish: string | null = null): BodyStep =>
  chunk({ choices: [{ index: 0, delta: fields, finish_reason: finish }] });

/** Events in their order, each with a text by which its client knows that it has come. */
const events: readonly (readonly [text: string, event: BodyStep])[] = [
  ["first", delta({ content: "first" })],
  ["second", delta({ content: "second" })],
  ["pondering", delta({ reasoning_content: "pondering" })],
  [
    "get_weather",
    delta({
      tool_calls: [
        {
          index: 0,
          id: "call_1",
          type: "function",
          function: { name: "get_weather", arguments: "" },
        },
      ],
    }),
  ],
  ["Paris", delta({ tool_calls: [{ index: 0, function: { arguments: '{"city":"Paris"}' } }] })],
  ['tool_calls"}', delta({}, "tool_calls")],
  ["service_metadata", chunk({ choices: [], usage: { prompt_tokens: 11, completion_tokens: 7 } })],
  ["[DONE]", sse("[DONE]")],
];

describe("each event is relayed before the provider sends the next one", () => {
  for (const [name, between] of [
    ["", []],
    [", with heartbeats in between", [body(": keep-alive\n\n")]],
  ] as const) {
    test(`events that wait for each other${name}`, async () => {
      scene = await startScene();
      const gates = events.map(() => scene.acme.gate());
      const steps: Step[] = events.flatMap(([, event], index) => [
        event,
        ...between,
        gates[index] ?? end(),
      ]);
      scene.acme.script([head(), delta({ role: "assistant", content: "" }), ...steps, end()]);
      const client = startLeavingClient(scene.gateway, chatRequest({ stream: true }));
      for (const [index, [text]] of events.entries()) {
        await client.hasSeen(text);
        gates[index]?.open();
      }
      await client.over;
      // The role, every event but [DONE], and nothing else.
      expect(client.events().length).toBe(events.length);
    });
  }
});

test("response headers forbid proxies to buffer a stream", async () => {
  scene = await startScene();
  const { headers } = await readReply(
    await scene.gateway.post("/chat/completions", chatRequest({ stream: true })),
  );
  expect(headers.get("x-accel-buffering")).toBe("no");
  expect(headers.get("cache-control")).toContain("no-transform");
  expect([headers.get("content-length"), headers.get("content-encoding")]).toEqual([null, null]);
});

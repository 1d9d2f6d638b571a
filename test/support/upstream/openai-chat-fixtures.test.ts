import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { type FaultUpstream, startFaultUpstream } from "./fault-upstream.ts";
import { chatAnswer, chatStream } from "./healthy-chat.ts";
import {
  chatChunks,
  chatCompletion,
  fixtureText,
  plainUsage,
  usageFixtures,
} from "./openai-chat-fixtures.ts";
import { json } from "./steps.ts";

let upstream: FaultUpstream;
let openai: OpenAI;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  openai = new OpenAI({ apiKey: "k", baseURL: upstream.baseUrl, maxRetries: 0 });
});
afterAll(() => upstream.stop());

const request = { model: "m", messages: [{ role: "user" as const, content: "Hi" }] };

test("without a script the upstream answers chat as OpenAI does, whole and streamed", async () => {
  const whole = await openai.chat.completions.create(request);
  const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
  const metered = await openai.chat.completions
    .stream({ ...request, stream_options: { include_usage: true } })
    .finalChatCompletion();
  for (const answer of [whole, streamed, metered]) {
    expect(answer.choices[0]).toMatchObject({
      finish_reason: "stop",
      message: { content: fixtureText },
    });
  }
  expect([whole.usage, streamed.usage, metered.usage]).toEqual([plainUsage, undefined, plainUsage]);
});

test("the client reassembles streamed tool calls and reasoning", async () => {
  const answer = {
    reasoning: ["think", "ing"],
    toolCalls: [
      { name: "one", arguments: ['{"a"', ":1}"] },
      { id: "c2", name: "two", arguments: "{}" },
    ],
  };
  upstream.enqueue((recorded) => chatAnswer(recorded, answer));
  const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
  upstream.enqueue((recorded) => chatAnswer(recorded, answer));
  const whole = await openai.chat.completions.create(request);
  for (const { choices } of [streamed, whole]) {
    expect(choices[0]?.finish_reason).toBe("tool_calls");
    expect(choices[0]?.message.tool_calls).toMatchObject([
      { id: "call_fixture_0", function: { name: "one", arguments: '{"a":1}' } },
      { id: "c2", function: { name: "two", arguments: "{}" } },
    ]);
  }
  expect(whole.choices[0]?.message).toHaveProperty("reasoning_content", "thinking");
});

test("usage is on the chunk that the fixture selects", () => {
  const places = (["finish", "after", "every", "never"] as const).map((usageOn) =>
    chatChunks({ text: ["a", "b"], usageOn })
      .map((chunk) => ("usage" in chunk ? "u" : "-"))
      .join(""),
  );
  expect(places).toEqual(["---u", "----u", "uuuu", "----"]);
  expect(chatChunks({ usageOn: "after" }).at(-1)).toMatchObject({ choices: [], usage: plainUsage });
});

test("invalid usage is sent unchanged, and missing usage is left out", async () => {
  for (const usage of Object.values(usageFixtures)) {
    const body: unknown = JSON.parse(JSON.stringify(chatCompletion({ usage })));
    if (usage === undefined) expect(body).not.toHaveProperty("usage");
    else expect(body).toHaveProperty("usage", usage);
  }
  upstream.enqueue(json(chatCompletion({ usage: usageFixtures.negative })));
  expect((await openai.chat.completions.create(request)).usage?.prompt_tokens).toBe(-11);
});

test("a null text and a missing finish reason are sent as such", () => {
  expect(chatCompletion({ text: null, finishReason: null })).toMatchObject({
    choices: [{ message: { content: null }, finish_reason: null }],
  });
  const reasons = chatChunks({ finishReason: null, usageOn: "never" })
    .flatMap((chunk) => chunk["choices"])
    .map((choice) => Reflect.get(Object(choice), "finish_reason"));
  expect(new Set(reasons)).toEqual(new Set([null]));
});

test("a stream has the events of its chunks in order and number", async () => {
  upstream.enqueue(chatStream({ text: ["x", "y"], usageOn: "never" }));
  const chunks = await Array.fromAsync(
    await openai.chat.completions.create({ ...request, stream: true }),
  );
  expect(chunks.map((chunk) => chunk.choices[0]?.delta.content)).toEqual(["", "x", "y", undefined]);
});

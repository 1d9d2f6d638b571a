import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import {
  fixtureText,
  plainUsage,
  usageFixtures,
} from "../../support/upstream/openai-chat-fixtures.ts";
import { openaiClient } from "./openai-client.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({ providers: [acme(upstream.baseUrl)] });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const request = { model: "acme/large", messages: [{ role: "user" as const, content: "Hello" }] };
const priced = { ...plainUsage, cost: 0.000016 };

describe.each(["/api/v1", "/v1"] as const)("with the base URL %s", (base) => {
  test("returns a whole completion with its cost", async () => {
    const completion = await openaiClient(gateway, { base }).chat.completions.create(request);
    expect(completion.choices[0]?.message).toMatchObject({
      role: "assistant",
      content: fixtureText,
    });
    expect(completion.choices[0]?.finish_reason).toBe("stop");
    expect(completion.model).toBe("acme/large");
    expect(completion.usage).toEqual(priced);
  });

  test("the client's request id is the trace id", async () => {
    const completion = await openaiClient(gateway, { base }).chat.completions.create(request);
    expect(completion.id).toBe(`chatcmpl-${completion._request_id}`);
  });
});

test("a stream has one id, the text, and the cost on the last chunk", async () => {
  const chunks = await Array.fromAsync(
    await openaiClient(gateway).chat.completions.create({ ...request, stream: true }),
  );
  expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(fixtureText);
  expect(chunks.at(-1)?.usage).toEqual(priced);
});

describe("the stream helper", () => {
  test("assembles the same as the whole completion", async () => {
    const streamed = await openaiClient(gateway)
      .chat.completions.stream(request)
      .finalChatCompletion();
    const whole = await openaiClient(gateway).chat.completions.create(request);
    expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content ?? "");
    expect(streamed.choices[0]?.finish_reason).toBe("stop");
    expect(streamed.usage).toEqual(priced);
    expect(streamed.usage).toEqual(whole.usage);
  });

  test.each(["finish", "after", "every", "never"] as const)(
    "reads usage wherever the provider sends it: %s",
    async (usageOn) => {
      upstream.enqueue((sent) => chatAnswer(sent, { usageOn }));
      const streamed = await openaiClient(gateway)
        .chat.completions.stream(request)
        .finalChatCompletion();
      expect(streamed.choices[0]?.message.content).toBe(fixtureText);
      expect(streamed.usage).toHaveProperty("cost");
      if (usageOn !== "never") expect(streamed.usage).toEqual(priced);
    },
  );

  test("emits its events in order and ends", async () => {
    const events: string[] = [];
    const stream = openaiClient(gateway).chat.completions.stream(request);
    stream
      .on("content.delta", () => events.push("delta"))
      .on("content.done", () => events.push("done"))
      .on("end", () => events.push("end"));
    await stream.done();
    expect(events).toEqual(["delta", "delta", "delta", "done", "end"]);
  });
});

test.each(["cached", "reasoning", "audio"] as const)(
  "usage details are relayed: %s",
  async (name) => {
    upstream.enqueue(
      (sent) => chatAnswer(sent, { usage: usageFixtures[name] }),
      (sent) => chatAnswer(sent, { usage: usageFixtures[name] }),
    );
    const whole = await openaiClient(gateway).chat.completions.create(request);
    const streamed = await openaiClient(gateway)
      .chat.completions.stream(request)
      .finalChatCompletion();
    expect(whole.usage).toMatchObject(usageFixtures[name]);
    expect(streamed.usage).toEqual(whole.usage);
  },
);

test("response headers can be read with the data", async () => {
  const { response } = await openaiClient(gateway).chat.completions.create(request).withResponse();
  expect(response.headers.get("x-service-model")).toBe("acme/large");
});

test("models can be listed and retrieved", async () => {
  const models = await Array.fromAsync(await openaiClient(gateway).models.list());
  expect(models.map((model) => model.id)).toContain("acme/large");
  // What OpenAI's schema demands of each, and its clients in typed languages with it.
  for (const { object, created, owned_by: owner } of models) {
    expect([object, Number.isInteger(created), typeof owner]).toEqual(["model", true, "string"]);
  }
  expect(await openaiClient(gateway).models.retrieve("acme/large")).toMatchObject({
    id: "acme/large",
    object: "model",
  });
});

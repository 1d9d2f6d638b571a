import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { KeepAliveTicker } from "../../../src/inference/pipeline/stream/keep-alive-ticker.ts";
import { useRealTimers } from "../../support/real-timers.ts";
import { fixtureText } from "../../support/upstream/openai-chat-fixtures.ts";
import { openaiClient } from "../clients/openai-client.ts";
import { errorsIn, readReply, saidIn } from "./support/chat-reply.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";

describe("a silent stream sends a keep-alive to its client", () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void useRealTimers());

  test("after ten seconds of silence, and not before", async () => {
    let nowMs = 0;
    const ticker = new KeepAliveTicker(() => nowMs);
    const pass = (milliseconds: number): void => {
      nowMs += milliseconds;
      jest.advanceTimersByTime(milliseconds);
    };
    const frames = ticker.newWait(": ping\n");
    let told: string | undefined;
    const wait = (): void => frames.begin((value) => (told = value));

    wait();
    pass(9_000);
    expect(told).toBeUndefined();
    pass(4_000);
    expect(told).toBe(": ping\n");
    wait();
    pass(9_000);
    frames.give("data: {}\n\n");
    expect(told).toBe("data: {}\n\n");
    // No reader waits, so no ping is sent.
    pass(30_000);
    wait();
    pass(9_000);
    expect(told).toBe("data: {}\n\n");
    frames.end();
    pass(9_000);
    expect(told).toBe("data: {}\n\n");
    ticker.stop();
  });
});

describe("keep-alive comments between events are compatible with clients", () => {
  let scene: Scene;
  beforeEach(async () => {
    // Two pings before every frame, as if each had taken its provider half a minute.
    let turn = 0;
    const original = KeepAliveTicker.prototype.watch;
    spyOn(KeepAliveTicker.prototype, "watch").mockImplementation(function watch(
      this: KeepAliveTicker,
      wait,
    ) {
      turn += 1;
      if (turn % 3 === 0) original.call(this, wait);
      else wait.ping();
    });
    scene = await startScene();
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await scene.end();
  });

  test("on the wire: single-line comments between events and never within one", async () => {
    const reply = await readReply(
      await scene.gateway.post("/chat/completions", chatRequest({ stream: true })),
    );
    expect(reply.comments.length).toBeGreaterThanOrEqual(6);
    expect(reply.raw).not.toMatch(/^(?:id|event|retry):/m);
    for (const block of reply.raw.trimEnd().split("\n\n"))
      expect(block).toMatch(/^(?:: ping(?:\n|$))*(?:data: [^\n]*)?$/);
    expect([saidIn(reply), errorsIn(reply), reply.doneCount]).toEqual([fixtureText, [], 1]);
  });

  test("OpenAI's client, event by event", async () => {
    const client = openaiClient(scene.gateway);
    const stream = await client.chat.completions.create({
      model: "acme/large",
      messages: [{ role: "user", content: "Hello" }],
      stream: true,
    });
    let said = "";
    for await (const chunk of stream) said += chunk.choices[0]?.delta.content ?? "";
    expect(said).toBe(fixtureText);
  });

  test("OpenAI's client, with its stream helper", async () => {
    const client = openaiClient(scene.gateway);
    const completion = await client.chat.completions
      .stream({ model: "acme/large", messages: [{ role: "user", content: "Hello" }] })
      .finalChatCompletion();
    expect([completion.choices[0]?.message.content, completion.choices[0]?.finish_reason]).toEqual([
      fixtureText,
      "stop",
    ]);
  });
});

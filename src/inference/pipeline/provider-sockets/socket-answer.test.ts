import { expect, test } from "bun:test";
import type { ExchangeTimeouts } from "../../upstream/exchange.ts";
import { SocketAnswer } from "./socket-answer.ts";

const hour = 3_600_000;

function begin(changes: Partial<ExchangeTimeouts> = {}) {
  const ends: (string | undefined)[] = [];
  const answer = new SocketAnswer({
    timeouts: { firstTokenMs: hour, idleMs: hour, totalMs: hour, ...changes },
    onOver: (responseId) => void ends.push(responseId),
  });
  return { answer, ends };
}

const event = { kind: "event", sse: "data: {}\n\n" } as const;

const read = async (answer: SocketAnswer): Promise<string | undefined> => {
  const bytes = await answer.next();
  return bytes && Buffer.from(bytes).toString();
};

test("events are read in order up to the end, which frees the socket", async () => {
  const { answer, ends } = begin();
  answer.take(event);
  answer.take(event);
  expect(await answer.begun).toBe(true);
  expect(await read(answer)).toBe(event.sse + event.sse);
  const waiting = read(answer);
  answer.take({ kind: "end", sse: "data: 2\n\n", responseId: "resp_1" });
  expect(ends).toEqual(["resp_1"]);
  expect(await waiting).toBe("data: 2\n\n");
  expect(await read(answer)).toBeUndefined();
  answer.abort();
  expect(ends).toHaveLength(1);
});

test("an error or a close before the first event is a refusal", async () => {
  const [refused, closed] = [begin(), begin()];
  refused.answer.take({ kind: "error", sse: "data: {}\n\n" });
  closed.answer.lose();
  expect(await refused.answer.begun).toBe(false);
  expect(await closed.answer.begun).toBe(false);
  expect([...refused.ends, ...closed.ends]).toEqual([undefined, undefined]);
});

test("a close after the first event, a shutdown and a frame without an event are failures", async () => {
  for (const [fault, end] of [
    ["connection_closed", (answer: SocketAnswer) => answer.lose()],
    ["shutting_down", (answer: SocketAnswer) => answer.breakOff()],
    ["malformed_response", (answer: SocketAnswer) => answer.take({ kind: "malformed", sse: "" })],
  ] as const) {
    const { answer, ends } = begin();
    answer.take(event);
    expect(await read(answer)).toBe(event.sse);
    const waiting = answer.next() as Promise<unknown>;
    end(answer);
    expect(waiting).rejects.toMatchObject({ fault });
    expect(ends).toEqual([undefined]);
  }
});

test("the deadlines are those of an answer over HTTP", async () => {
  const silent = begin({ firstTokenMs: 1 });
  await expect(silent.answer.begun).rejects.toMatchObject({ fault: "first_token_timeout" });
  const stalled = begin({ idleMs: 1 });
  stalled.answer.take(event);
  expect(await read(stalled.answer)).toBe(event.sse);
  await expect(read(stalled.answer)).rejects.toMatchObject({ fault: "idle_timeout" });
  const slow = begin({ totalMs: 1 });
  await expect(slow.answer.begun).rejects.toMatchObject({ fault: "total_timeout" });
});

test("an answer that nothing reads is ended at 32 MB", async () => {
  const { answer, ends } = begin();
  const large = { kind: "event", sse: "x".repeat(12 * 1024 * 1024) } as const;
  for (let count = 0; count < 3; count += 1) answer.take(large);
  expect(ends).toEqual([undefined]);
  await read(answer);
  await expect(read(answer)).rejects.toMatchObject({ fault: "response_too_large" });
});

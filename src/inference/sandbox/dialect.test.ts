import { expect, test } from "bun:test";
import type { Directives } from "./directives.ts";
import { play, type WireEvent } from "./dialect.ts";

const events: WireEvent[] = [
  { wire: "open ", content: false },
  { wire: "a ", content: true },
  { wire: "b ", content: true },
  { wire: "close", content: false },
];

function player(directives: Directives, abort = new AbortController()): AsyncGenerator<string> {
  return play(events, {
    directives,
    signal: abort.signal,
    failure: (sent) => `failed after ${sent}`,
  });
}

async function textOf(generator: AsyncGenerator<string>): Promise<string> {
  let text = "";
  for await (const piece of generator) text += piece;
  return text;
}

test("plays every event by default", async () => {
  expect(await textOf(player({}))).toBe("open a b close");
});

test("fails after error_after content events, and before any for 0", async () => {
  expect(await textOf(player({ error_after: 0 }))).toBe("failed after 0");
  expect(await textOf(player({ error_after: 1 }))).toBe("open a failed after 2");
  expect(await textOf(player({ error_after: 2 }))).toBe("open a b failed after 3");
  expect(await textOf(player({ error_after: 3 }))).toBe("open a b close");
});

test("throws for cut_after after the events before it", async () => {
  const generator = player({ cut_after: 1 });
  expect((await generator.next()).value).toBe("open ");
  expect((await generator.next()).value).toBe("a ");
  await expect(generator.next()).rejects.toThrow("cut");
});

test("ends a stall when the client disconnects", async () => {
  const abort = new AbortController();
  const generator = player({ stall_after: 1 }, abort);
  await generator.next();
  await generator.next();
  const stalled = generator.next();
  expect(Bun.peek.status(stalled)).toBe("pending");
  abort.abort();
  expect((await stalled).done).toBe(true);
});

test("ends a token delay when the client disconnects", async () => {
  const abort = new AbortController();
  const generator = player({ token_delay_ms: 600_000 }, abort);
  await generator.next();
  const waiting = generator.next();
  abort.abort();
  expect((await waiting).done).toBe(true);
});

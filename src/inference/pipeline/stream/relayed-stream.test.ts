import { describe, expect, spyOn, test } from "bun:test";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { StreamRelay } from "../../dialects/shared/stream/stream-relay.ts";
import { RelayedStream, type RelayedStreamOptions } from "./relayed-stream.ts";
import { KeepAliveTicker } from "./keep-alive-ticker.ts";
import type { PieceReader } from "../../upstream/response-parser.ts";

/**
 * An upstream whose answer the test tells piece by piece; `promises` where it cannot tell its reader,
 * as those whose answers are compressed.
 */
function toldUpstream({ promises }: { promises: boolean }) {
  const pieces: (Uint8Array | undefined)[] = [];
  let waiter: ((piece: Uint8Array | undefined) => void) | undefined;
  const tell = (text: string | undefined): void => {
    const piece = text === undefined ? undefined : Buffer.from(text);
    const told = waiter;
    waiter = undefined;
    if (told === undefined) pieces.push(piece);
    else told(piece);
  };
  const next = (): Promise<Uint8Array | undefined> | Uint8Array | undefined =>
    pieces.length > 0 ? pieces.shift() : new Promise((resolve) => (waiter = resolve));
  const unused = (): undefined => undefined;
  const tellNext = (reader: PieceReader): boolean => {
    if (pieces.length > 0) return false;
    waiter = reader.resolve;
    return true;
  };
  const response = {
    status: 200,
    headers: {},
    next,
    ...(promises ? {} : { tellNext }),
    readText: () => Promise.resolve(""),
    expectMore: unused,
    expectEnd: unused,
    abort: unused,
  };
  return { response, tell };
}

/** Sends on what each event says; `[DONE]` waits for the settlement. */
function echoing(settle: () => Promise<unknown>): StreamRelay {
  const relay = {
    ended: false,
    hasContent: false,
    finished: false,
    finishReason: null,
    upstreamId: null,
    pingFrame: ": ping\n",
    outputCharacters: 0,
    endAtCap: async () => "",
    metered: () => ({ usage: {}, estimated: true, clamped: false }),
    fail: () => "failed",
    async finish() {
      await settle();
      relay.ended = true;
      return "end";
    },
    accept({ data }: { data: string }) {
      relay.hasContent = true;
      if (data === "broken") throw new Error("no event");
      return data === "[DONE]" ? relay.finish() : `${data};`;
    },
  };
  return relay;
}

const primed = (...said: string[]) => primedBy({ promises: false }, said);

async function primedBy(upstream: { promises: boolean }, said: readonly string[]) {
  const { response, tell } = toldUpstream(upstream);
  for (const text of said) tell(text);
  const settlement = Promise.withResolvers<void>();
  const ends: string[] = [];
  const waits: { ping(): void }[] = [];
  const keepAlive = new KeepAliveTicker(() => 0);
  spyOn(keepAlive, "watch").mockImplementation((wait) => void waits.push(wait));
  const options: RelayedStreamOptions = {
    response,
    decoder: undefined,
    drainOnCancel: true,
    keepAlive,
    onFirstContent: () => undefined,
    onClosed: () => undefined,
    settle: async (_, { status }) => {
      ends.push(status);
      await settlement.promise;
      return {
        chargedNano: 0n,
        uncollectedNano: 0n,
        heldNano: 0n,
        balanceAfterNano: 0n,
        settledMs: 0,
        free: false,
        isByok: false,
      };
    },
    metadataText: () => "{}",
    asError: () => new GatewayError("bad_gateway", "The stream broke."),
  };
  const stream = new RelayedStream(options, ({ settle }) => echoing(settle));
  expect(await stream.prime()).toBeUndefined();
  return { stream, tell, settle: settlement.resolve, ends, waits };
}

describe("ready", () => {
  test("returns the available frames once, and later frames go to next", async () => {
    const { stream, tell, settle } = await primed("data: a\n\ndata: b\n\n");
    expect([stream.ready(), stream.ready(), stream.isOver]).toEqual(["a;b;", undefined, false]);
    const waited = stream.next();
    tell("data: c\n\n");
    expect([stream.ready(), await waited]).toEqual([undefined, "c;"]);
    tell("data: [DONE]\n\n");
    settle();
    expect([await stream.next(), stream.isOver, await stream.next()]).toEqual([
      "end",
      true,
      undefined,
    ]);
  });

  test("omits the event that waits for its charge", async () => {
    const { stream, settle } = await primed("data: a\n\ndata: [DONE]\n\n");
    expect([stream.ready(), stream.ready(), stream.isOver]).toEqual(["a;", undefined, false]);
    settle();
    expect([await stream.next(), stream.isOver]).toEqual(["end", true]);
  });

  test("includes the end if it is available", async () => {
    const { stream, settle } = await primed("data: a\n\ndata: [DONE]\n\n");
    settle();
    await Bun.sleep(0);
    expect([stream.isOver, stream.ready(), stream.isOver]).toEqual([false, "a;end", true]);
  });

  test("returns nothing after cancellation", async () => {
    const { stream } = await primed("data: a\n\n");
    stream.cancel();
    expect([stream.ready(), stream.isOver, await stream.next()]).toEqual([
      undefined,
      true,
      undefined,
    ]);
  });
});

describe("a waiting client", () => {
  test("receives an event in the turn in which it arrives", async () => {
    const { stream, tell } = await primed("data: a\n\n");
    stream.ready();
    const told: unknown[] = [];
    stream.tellNext((frames) => told.push(frames));
    tell(": nothing\n\n");
    expect(told).toEqual([]);
    tell("data: b\n\n");
    expect(told).toEqual(["b;"]);
  });

  test("receives available frames at once, and the end", async () => {
    const { stream, tell, settle } = await primed("data: a\n\n");
    const told: unknown[] = [];
    stream.tellNext((frames) => told.push(frames));
    expect(told).toEqual(["a;"]);
    settle();
    const end = stream.next();
    tell(undefined);
    expect(await end).toBe("end");
    stream.tellNext((frames) => told.push(frames));
    expect(told).toEqual(["a;", undefined]);
  });

  test.each([[{ promises: false }], [{ promises: true }]])(
    "receives the last event before the end waits for its charge: %p",
    async (upstream) => {
      const { stream, tell, settle } = await primedBy(upstream, ["data: a\n\n"]);
      stream.ready();
      tell("data: {}");
      const waited = stream.next();
      tell(undefined);
      expect(await waited).toBe("{};");
      const end = stream.next();
      settle();
      expect([await end, stream.isOver, await stream.next()]).toEqual(["end", true, undefined]);
    },
  );

  test.each([[{ promises: false }], [{ promises: true }]])(
    "receives the error that interrupts the stream: %p",
    async (upstream) => {
      const { stream, tell, settle, ends } = await primedBy(upstream, ["data: a\n\n"]);
      stream.ready();
      settle();
      const waited = stream.next();
      tell("data: b\n\n");
      expect(await waited).toBe("b;");
      const broken = stream.next();
      tell("data: broken\n\n");
      expect([await broken, stream.isOver, ends]).toEqual(["failed", true, ["cut"]]);
    },
  );
});

test("frames that arrive during a ping are returned once, by the next wait", async () => {
  const { stream, tell, waits } = await primed("data: a\n\n");
  stream.ready();
  const waited = stream.next();
  waits[0]?.ping();
  tell("data: b\n\n");
  expect([await waited, await stream.next()]).toEqual([": ping\n", "b;"]);
  const again = stream.next();
  waits[0]?.ping();
  const last = stream.next();
  tell("data: c\n\n");
  expect([await again, await last, stream.ready(), new Set(waits).size]).toEqual([
    ": ping\n",
    "c;",
    undefined,
    1,
  ]);
});

const clients: [what: string, waits: boolean][] = [
  ["waits", true],
  ["has unread frames", false],
];
test.each(clients)(
  "the upstream is read to its end after a client that %s disconnects",
  async (_, waits) => {
    const { stream, tell, settle, ends } = await primed("data: a\n\n");
    const waited = waits ? [stream.ready(), stream.next()] : [];
    stream.cancel();
    tell("data: b\n\n");
    await Bun.sleep(0);
    tell("data: [DONE]\n\n");
    settle();
    await Bun.sleep(0);
    expect([ends, stream.isOver, await stream.next()]).toEqual([["cancelled"], true, undefined]);
    expect(await waited[1]).toBe(waits ? "b;" : undefined);
  },
);

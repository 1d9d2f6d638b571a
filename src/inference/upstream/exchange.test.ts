import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { seeded } from "../../../test/support/seeded.ts";
import { DeadlineWatch } from "./deadline-watch.ts";
import { Exchange, type ExchangeConnection } from "./exchange.ts";
import { ResponseParser } from "./response-parser.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

const head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const text = (piece: Uint8Array | undefined) =>
  piece === undefined ? undefined : Buffer.from(piece).toString();

/**
 * An exchange whose socket is read by the test: `read` is one reading, `calls` what the connection
 * heard.
 */
async function underWay() {
  const calls: string[] = [];
  const connection: ExchangeConnection = {
    send: () => undefined,
    pause: () => void calls.push("pause"),
    resume: () => void calls.push("resume"),
    destroy: () => void calls.push("destroy"),
    noteKeepAlive: () => undefined,
  };
  const clock = new FakeClock();
  const exchange = new Exchange({
    connection,
    clock,
    watch: new DeadlineWatch(clock),
    timeouts: { firstTokenMs: 1_000, idleMs: 1_000, totalMs: 60_000 },
    abortScope: {
      clientGone: false,
      heardClientLeave: false,
      attach: () => undefined,
      listen: () => undefined,
    },
  });
  let ended = false;
  const parser = new ResponseParser({
    onHead: (told) => exchange.onHead(told),
    onBody: (bytes, start, end) => exchange.onBody(bytes, start, end),
    onEnd: () => {
      ended = true;
      exchange.onEnd();
    },
  });
  const read = (bytes: string | Buffer) => {
    parser.push(Buffer.from(bytes));
    if (!ended) exchange.onRead();
  };
  const started = exchange.start([]);
  read(head);
  expect((await started) as unknown).toBe(exchange);
  return { exchange, calls, read, clock };
}

/** Every piece up to the end. */
async function pieces(exchange: Exchange): Promise<string[]> {
  const all: string[] = [];
  for (let piece = await exchange.next(); piece !== undefined; piece = await exchange.next())
    all.push(String(text(piece)));
  return all;
}

describe("the data of one read", () => {
  test("is one piece for a later reader", async () => {
    const { exchange, read } = await underWay();
    read(chunk("one ") + chunk("two ") + chunk("three"));
    read(`${chunk("four ")}0\r\n\r\n`);
    expect(await pieces(exchange)).toEqual(["one two three", "four "]);
  });

  test("is one piece for a waiting reader", async () => {
    const { exchange, read } = await underWay();
    const first = exchange.next();
    read(chunk("one ") + chunk("two"));
    expect(text(await first)).toBe("one two");
    const second = exchange.next();
    read(`${chunk("three ")}${chunk("four")}0\r\n\r\n`);
    expect(text(await second)).toBe("three four");
    expect(exchange.next()).toBeUndefined();
  });

  test("can contain only the end", async () => {
    const { exchange, read } = await underWay();
    const waited = exchange.next();
    read("0\r\n\r\n");
    expect(await waited).toBeUndefined();
  });

  test("can be taken as one text", async () => {
    const { exchange, read } = await underWay();
    read(`${chunk('{"a":')}${chunk("1}")}0\r\n\r\n`);
    expect(exchange.takeText(100)).toBe('{"a":1}');
  });

  test("is complete for any split of the bytes", async () => {
    const random = seeded(7);
    for (let round = 0; round < 200; round += 1) {
      const { exchange, read } = await underWay();
      const upTo = (count: number): number => Math.floor(random() * count);
      const texts = Array.from(
        { length: 1 + upTo(9) },
        (_, index) => `${index}é${"x".repeat(upTo(40))};`,
      );
      const bytes = Buffer.from(`${texts.map(chunk).join("")}0\r\n\r\n`);
      const cuts = Array.from({ length: 4 }, () => Math.floor(random() * bytes.length)).sort(
        (one, other) => one - other,
      );
      const asked = random() < 0.5 ? exchange.next() : undefined;
      [0, ...cuts].forEach((cut, index) => read(bytes.subarray(cut, cuts[index] ?? bytes.length)));
      const first = asked === undefined ? [] : [await asked];
      const rest: (Uint8Array | undefined)[] = [];
      for (let piece = await exchange.next(); piece !== undefined; piece = await exchange.next())
        rest.push(piece);
      expect(
        Buffer.concat([...first, ...rest].filter((piece) => piece !== undefined)).toString(),
      ).toBe(texts.join(""));
    }
  });
});

test("any byte of the body is a sign of life until the content is complete", async () => {
  const { exchange, read, clock } = await underWay();
  expect(exchange.deadlineMs).toBe(1_000);
  for (const [beat, deadlineMs] of [
    [": ping\n\n", 1_900],
    ["\n", 2_800],
    [": ping\n\n", 3_700],
  ] as const) {
    clock.advance(900);
    read(chunk(beat));
    expect(exchange.deadlineMs).toBe(deadlineMs);
  }
  exchange.expectEnd();
  clock.advance(900);
  read(chunk(": ping\n\n"));
  expect(exchange.deadlineMs).toBe(3_700);
  exchange.expectMore();
  expect(exchange.deadlineMs).toBe(4_600);
  clock.advance(80_000);
  read(chunk("x"));
  expect(exchange.deadlineMs).toBe(60_000);
});

test("a failure is delivered after the data before it", async () => {
  const { exchange, read } = await underWay();
  const waited = exchange.next();
  read(chunk("one"));
  read(chunk("two"));
  exchange.onFailure(new UpstreamFailure("connection_closed", "gone", { sent: true }));
  expect([text(await waited), text(await exchange.next())]).toEqual(["one", "two"]);
  await expect(exchange.next()).rejects.toMatchObject({ fault: "connection_closed" });
});

/** A reader that notes what it receives. */
function noting() {
  const told: unknown[] = [];
  const reader = {
    resolve: (piece: Uint8Array | undefined) => void told.push(text(piece)),
    reject: ({ fault }: UpstreamFailure) => void told.push(fault),
  };
  return { told, reader };
}

test("a callback receives a piece in the turn in which it was read, and the end", async () => {
  const { exchange, read } = await underWay();
  const { told, reader } = noting();
  expect(exchange.tellNext(reader)).toBe(true);
  read(chunk("one ") + chunk("two"));
  expect(told).toEqual(["one two"]);
  read(chunk("three"));
  // It asks for each piece, and what is there already is for `next`.
  expect([told.length, exchange.tellNext(reader), text(await exchange.next())]).toEqual([
    1,
    false,
    "three",
  ]);
  expect(exchange.tellNext(reader)).toBe(true);
  read("0\r\n\r\n");
  expect([told, exchange.tellNext(reader)]).toEqual([["one two", undefined], false]);
});

test("a callback receives a failure", async () => {
  const { exchange } = await underWay();
  const { told, reader } = noting();
  exchange.tellNext(reader);
  exchange.onFailure(new UpstreamFailure("connection_closed", "gone", { sent: true }));
  expect([told, exchange.tellNext(reader)]).toEqual([["connection_closed"], false]);
});

test("a waiting reader receives a failure", async () => {
  const { exchange } = await underWay();
  const waited = exchange.next();
  exchange.onFailure(new UpstreamFailure("connection_closed", "gone", { sent: true }));
  await expect(waited).rejects.toMatchObject({ fault: "connection_closed" });
});

test("the upstream is paused while much data is unread, and then resumed", async () => {
  const { exchange, calls, read } = await underWay();
  read(chunk("x".repeat(200_000)));
  expect(calls).toEqual([]);
  read(chunk("x".repeat(100_000)));
  expect(calls).toEqual(["pause"]);
  await exchange.next();
  expect(calls).toEqual(["pause"]);
  await exchange.next();
  expect(calls).toEqual(["pause", "resume"]);
});

/** A clock that advances by itself each time it is read; `readings` counts that. */
class AdvancingClock extends FakeClock {
  readings = 0;
  private readonly stepMs: number;

  constructor(stepMs: number) {
    super();
    this.stepMs = stepMs;
  }

  override monotonicMs(): number {
    this.readings += 1;
    this.advance(this.stepMs);
    return super.monotonicMs();
  }
}

/** Returns how many sweeps come before one finds that a deadline has passed. */
async function sweepsUntilDeadline(stepMs: number): Promise<number> {
  const clock = new AdvancingClock(stepMs);
  const watch = new DeadlineWatch(clock);
  const { promise: struck, resolve } = Promise.withResolvers<void>();
  watch.add({
    place: -1,
    addedAtSweep: 0,
    excusedDeadlineMs: 0,
    deadlineMs: stepMs + 1,
    onDeadline: resolve,
    onLasting: () => undefined,
  });
  await struck;
  watch.stop();
  // The first reading is that of `add`.
  return clock.readings - 1;
}

describe("a deadline that has passed", () => {
  test("counts in the sweep that finds it", async () => {
    expect(await sweepsUntilDeadline(10)).toBe(1);
  });

  test("counts in the next one where the process stood still: what came meanwhile is read first", async () => {
    expect(await sweepsUntilDeadline(10_000)).toBe(2);
  });
});

import { beforeEach, describe, expect, test } from "bun:test";
import type { ServerWebSocket } from "bun";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import type { ClientSocket, SocketData, SocketSession } from "./client-socket.ts";
import { OpenSockets } from "./open-sockets.ts";

/** The platform's side of a socket, whose client reads when the test says so. */
class Platform {
  readonly data: SocketData;
  readonly closes: (readonly [number, string])[] = [];
  pings = 0;
  unread = 0;

  constructor(session: SocketSession) {
    this.data = { session, socket: undefined };
  }

  send(text: string): number {
    this.unread += text.length;
    return text.length;
  }

  getBufferedAmount(): number {
    return this.unread;
  }

  ping(): void {
    this.pings += 1;
  }

  close(code: number, reason: string): void {
    this.closes.push([code, reason]);
  }

  terminate(): void {}
}

const megabyte = "x".repeat(1024 * 1024);
let clock: FakeClock;
let sockets: OpenSockets;
let errors: unknown[];
beforeEach(() => {
  clock = new FakeClock();
  errors = [];
  sockets = new OpenSockets(clock, (error) => void errors.push(error));
});

/**
 * Opens a socket whose session works on its frames; returns both of its sides, and the times that its
 * session was given.
 */
function open(received: (frame: string | Uint8Array) => void = () => undefined): {
  platform: Platform;
  socket: ClientSocket;
  passed: number[];
  close(): void;
} {
  const passed: number[] = [];
  let opened: ClientSocket | undefined;
  const platform = new Platform({
    opened: (socket) => void (opened = socket),
    received,
    ending: () => undefined,
    closed: () => undefined,
    passed: (nowMs) => void passed.push(nowMs),
  });
  const bun = platform as unknown as ServerWebSocket<SocketData>;
  void sockets.handlers.open?.(bun);
  if (opened === undefined) throw new Error("the session was not opened");
  const close = (): void => void sockets.handlers.close?.(bun, 1000, "");
  return { platform, socket: opened, passed, close };
}

describe("a client that does not read", () => {
  test("makes its sender wait from 4 MB on, until it has read half of them", async () => {
    const { platform, socket } = open();
    for (let index = 0; index < 4; index += 1) socket.send(megabyte);
    expect(socket.untilRoom()).toBeUndefined();
    socket.send(megabyte);
    const room = socket.untilRoom();
    expect(room).toBeInstanceOf(Promise);
    platform.unread = 3 * 1024 * 1024;
    socket.drained();
    expect(socket.untilRoom()).toBe(room);
    platform.unread = 1024 * 1024;
    socket.drained();
    await room;
    expect(socket.untilRoom()).toBeUndefined();
  });

  test("is closed with 1013 after a minute, and not before", () => {
    const { platform, socket } = open();
    for (let index = 0; index < 5; index += 1) socket.send(megabyte);
    clock.advance(60_000);
    sockets.pass();
    expect(platform.closes).toEqual([]);
    clock.advance(1);
    sockets.pass();
    expect(platform.closes).toEqual([[1013, "The client has not read for a minute."]]);
  });

  test("is waited for no longer once it is gone", async () => {
    const { socket, close } = open();
    for (let index = 0; index < 5; index += 1) socket.send(megabyte);
    const room = socket.untilRoom();
    close();
    await room;
    expect(socket.isOpen).toBe(false);
  });
});

test("a frame that its session cannot work on ends its socket alone", () => {
  const other = open();
  const { platform } = open(() => {
    throw new RangeError("too deep");
  });
  const bun = platform as unknown as ServerWebSocket<SocketData>;
  void sockets.handlers.message?.(bun, "frame");
  expect(platform.closes.map(([code]) => code)).toEqual([1011]);
  expect(errors).toEqual([expect.any(RangeError)]);
  expect(other.platform.closes).toEqual([]);
});

test("open sockets are pinged, and their sessions learn the time", () => {
  const { platform, passed } = open();
  clock.advance(20_000);
  sockets.pass();
  expect(platform.pings).toBe(1);
  expect(passed).toEqual([20_000]);
});

test("the seconds of open and of closed sockets are counted", () => {
  const first = open();
  clock.advance(10_000);
  const second = open();
  clock.advance(5_000);
  expect(sockets.secondsOpen).toBe(20);
  first.close();
  clock.advance(1_000);
  expect(sockets.secondsOpen).toBe(21);
  second.close();
  clock.advance(60_000);
  expect(sockets.secondsOpen).toBe(21);
});

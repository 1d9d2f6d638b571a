import { expect, test } from "bun:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import type { RequestSource } from "../../../http/request-context.ts";
import type { ServedRequest } from "../../../http/served-request.ts";
import { Reply } from "../../../http/reply.ts";
import type { ClientSocket } from "../../../http/sockets/client-socket.ts";
import type { Caller } from "../../../identity/keys/caller.ts";
import { ResponsesConnection } from "./responses-connection.ts";

const hour = 3_600_000;

/** A connection whose responses end when the test says so. */
function connect() {
  const clock = new FakeClock();
  const sent: Record<string, unknown>[] = [];
  const closes: number[] = [];
  const running: ((events: string | undefined) => void)[] = [];
  const serve = (): Promise<Reply> =>
    Promise.resolve(
      new Reply(
        {
          next: () => new Promise<string | undefined>((resolve) => running.push(resolve)),
          cancel: () => undefined,
        },
        { headers: {} },
      ),
    );
  const socket = {
    isOpen: true,
    send: (text: string) => void sent.push(JSON.parse(text) as Record<string, unknown>),
    untilRoom: () => undefined,
    close: (code: number) => void closes.push(code),
  };
  const connection = new ResponsesConnection({
    createRequest: (() => ({ memory: { release: () => undefined } })) as unknown as ReturnType<
      ServedRequest["framing"]
    >,
    serve: serve as unknown as RequestSource<Caller>["serve"],
    clock,
    lanesMax: 8,
  });
  connection.opened(socket as unknown as ClientSocket);
  return { clock, connection, sent, closes, running };
}

test("a socket of 60 minutes sends its limit and is closed with 1001", () => {
  const { clock, connection, sent, closes } = connect();
  clock.advance(hour);
  connection.passed(clock.monotonicMs());
  expect(closes).toEqual([]);
  clock.advance(1);
  connection.passed(clock.monotonicMs());
  expect(sent).toMatchObject([
    { type: "error", error: { code: "websocket_connection_limit_reached" } },
  ]);
  expect(closes).toEqual([1001]);
});

test("a socket that ends finishes its running response, and refuses what comes", async () => {
  const { connection, sent, closes, running } = connect();
  connection.received('{"type":"response.create","model":"m","input":"Hi"}');
  while (running.length === 0) await Bun.sleep(1);
  connection.ending();
  expect(closes).toEqual([]);
  connection.received('{"type":"response.create","model":"m","input":"Late"}');
  expect(sent).toMatchObject([{ type: "error", status: 503 }]);
  running.shift()?.('event: response.completed\ndata: {"type":"response.completed"}\n\n');
  while (running.length === 0) await Bun.sleep(1);
  running.shift()?.(undefined);
  while (closes.length === 0) await Bun.sleep(1);
  expect(sent.at(-1)).toMatchObject({ type: "response.completed" });
  expect(closes).toEqual([1001]);
});

import { expect, test } from "bun:test";
import { LinePace } from "./line-pace.ts";

test("lines start at once while no client uses the gateway, and spaced while one does", () => {
  let [nowMs, clients] = [0, 0];
  const pace = new LinePace({ monotonicMs: () => nowMs }, () => clients);
  expect([pace.take(), pace.take(), pace.take()]).toEqual([0, 0, 0]);
  clients = 1;
  expect([pace.take(), pace.take()]).toEqual([0, 20]);
  nowMs = 15;
  expect(pace.take()).toBe(5);
  nowMs = 20;
  clients = 0;
  // Between two requests of a client.
  expect([pace.take(), pace.take()]).toEqual([0, 20]);
  nowMs = 1_020;
  expect([pace.take(), pace.take()]).toEqual([0, 0]);
});

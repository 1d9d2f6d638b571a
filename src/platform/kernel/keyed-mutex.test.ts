import { expect, test } from "bun:test";
import { Turns } from "./keyed-mutex.ts";

test("work under one name waits for the work before it, whatever became of that; other names do not wait", async () => {
  const turns = new Turns();
  const done: string[] = [];
  const first = Promise.withResolvers<void>();
  const failing = turns.run("a", () =>
    first.promise.then(() => Promise.reject(new Error("broken"))),
  );
  const waiting = turns.run("a", async () => done.push("a"));
  await turns.run("b", async () => done.push("b"));
  expect(done).toEqual(["b"]);
  first.resolve();
  await expect(failing).rejects.toThrow("broken");
  await waiting;
  expect(done).toEqual(["b", "a"]);
});

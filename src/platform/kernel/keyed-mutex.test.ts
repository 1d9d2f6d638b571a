import { expect, test } from "bun:test";
import { KeyedMutex, lazily } from "./keyed-mutex.ts";

test("KeyedMutex runs work of one key in order, also after a failure, and other keys in parallel", async () => {
  const mutex = new KeyedMutex();
  const done: string[] = [];
  const first = Promise.withResolvers<void>();
  const failing = mutex.run("a", () =>
    first.promise.then(() => Promise.reject(new Error("broken"))),
  );
  const waiting = mutex.run("a", async () => done.push("a"));
  await mutex.run("b", async () => done.push("b"));
  expect(done).toEqual(["b"]);
  first.resolve();
  await expect(failing).rejects.toThrow("broken");
  await waiting;
  expect(done).toEqual(["b", "a"]);
});

test("lazily calls its function once, for concurrent callers too", async () => {
  let times = 0;
  const made = lazily(async () => ++times);
  expect(times).toBe(0);
  expect(await Promise.all([made(), made()])).toEqual([1, 1]);
  expect(await made()).toBe(1);
});

test("lazily passes a failure to all waiting callers, and the next call tries again", async () => {
  let times = 0;
  const made = lazily(async () => {
    times += 1;
    if (times === 1) throw new Error("no file may be opened");
    return times;
  });
  const both = await Promise.allSettled([made(), made()]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await made()).toBe(2);
});

import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { entryUnit, nextTurn, queueOnHeldWriter } from "../../../test/support/held-writer.ts";
import type { GroupCommitQueue } from "./group-commit-queue.ts";
import { StorageUnavailableError } from "./storage-error.ts";

test("an idle queue writes the units of one turn at once; later units form the next batch", async () => {
  const { writer, queue } = queueOnHeldWriter();
  const commits = [queue.commit(entryUnit("a")), queue.commit(entryUnit("b"))];
  await nextTurn();
  commits.push(queue.commit(entryUnit("c")), queue.commit(entryUnit("d")));
  await nextTurn();
  expect(writer.batches).toEqual([["a", "b"]]);
  await writer.finish();
  expect(writer.batches).toEqual([
    ["a", "b"],
    ["c", "d"],
  ]);
  expect(queue.pendingCount).toBe(2);
  await writer.finish();
  await Promise.all(commits);
  expect(queue.pendingCount).toBe(0);
});

/**
 * Commits a unit in each of so many turns of the event loop, each after the one before it was
 * accepted.
 */
async function commitInTurns(
  queue: GroupCommitQueue,
  ids: readonly string[],
): Promise<Promise<void>[]> {
  const commits: Promise<void>[] = [];
  for (const id of ids) {
    commits.push(queue.commit(entryUnit(id), { moreMayFollow: true }));
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return commits;
}

test("units of consecutive turns form one batch while others are expected, until a turn adds none", async () => {
  const { writer, queue } = queueOnHeldWriter({ clock: new FakeClock() });
  const commits = await commitInTurns(queue, ["a", "b", "c"]);
  expect(writer.batches).toEqual([]);
  await nextTurn();
  expect(writer.batches).toEqual([["a", "b", "c"]]);
  await writer.finish();
  await Promise.all(commits);
});

test("units are delayed for others by at most a millisecond", async () => {
  const clock = new FakeClock();
  const { writer, queue } = queueOnHeldWriter({ clock });
  const commits = await commitInTurns(queue, ["a", "b"]);
  clock.advance(1);
  commits.push(...(await commitInTurns(queue, ["c", "d"])));
  expect(writer.batches).toEqual([["a", "b", "c"]]);
  await writer.finish();
  await nextTurn();
  expect(writer.batches).toEqual([["a", "b", "c"], ["d"]]);
  await writer.finish();
  await Promise.all(commits);
});

test("a unit without moreMayFollow sends the delayed units at once", async () => {
  const { writer, queue } = queueOnHeldWriter({ clock: new FakeClock() });
  const commits = [
    queue.commit(entryUnit("a"), { moreMayFollow: true }),
    queue.commit(entryUnit("b")),
  ];
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect(writer.batches).toEqual([["a", "b"]]);
  await writer.finish();
  await Promise.all(commits);
});

test("a batch has a maximum size and keeps the order", async () => {
  const { writer, queue } = queueOnHeldWriter({ maxBatchUnits: 2 });
  const commits = ["a", "b", "c", "d", "e"].map((id) => queue.commit(entryUnit(id)));
  for (let batch = 0; batch < 3; batch++) {
    await nextTurn();
    await writer.finish();
  }
  await Promise.all(commits);
  expect(writer.batches).toEqual([["a", "b"], ["c", "d"], ["e"]]);
});

test("only the failed units of a batch reject", async () => {
  const { writer, queue } = queueOnHeldWriter();
  const outcomes = Promise.allSettled(["a", "b", "c"].map((id) => queue.commit(entryUnit(id))));
  await nextTurn();
  await writer.finish([{ index: 1, error: new Error("b is bad") }]);
  expect((await outcomes).map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "fulfilled",
  ]);
});

test("a failing writer rejects only its batch", async () => {
  const { writer, queue } = queueOnHeldWriter();
  const first = queue.commit(entryUnit("a")).catch((error: unknown) => error);
  await nextTurn();
  const second = queue.commit(entryUnit("b"));
  await writer.fail(new Error("broken"));
  expect(await first).toEqual(new Error("broken"));
  await writer.finish();
  await second;
});

test("units that wait too long are refused, and units in progress are not", async () => {
  const { writer, queue } = queueOnHeldWriter({ maxWaitMs: 5 });
  const sent = queue.commit(entryUnit("sent"));
  await nextTurn();
  const waiting = queue.commit(entryUnit("waiting")).catch((error: unknown) => error);
  expect(await waiting).toBeInstanceOf(StorageUnavailableError);
  expect(queue.pendingCount).toBe(1);
  await writer.finish();
  await sent;
  expect(writer.batches).toEqual([["sent"]]);
});

test("units do not expire while the process itself is suspended", async () => {
  const clock = new FakeClock();
  const { writer, queue } = queueOnHeldWriter({ clock, maxWaitMs: 5 });
  const sent = queue.commit(entryUnit("sent"));
  await nextTurn();
  const waiting = queue.commit(entryUnit("waiting"));
  clock.standStill(8_000);
  expect([queue.stalled, queue.admits()]).toEqual([false, true]);
  await untilTimersOf(5);
  expect([queue.pendingCount, queue.rejectedCount, queue.admits()]).toEqual([2, 0, true]);
  await writer.finish();
  await writer.finish();
  await Promise.all([sent, waiting]);
  expect(writer.batches).toEqual([["sent"], ["waiting"]]);
});

/** Resolves after the timers of so many milliseconds that were started before, by one of them. */
async function untilTimersOf(maxWaitMs: number): Promise<void> {
  const clock = new FakeClock();
  const { writer, queue } = queueOnHeldWriter({ clock, maxWaitMs });
  writer.ready = Promise.withResolvers();
  const late = queue.commit(entryUnit("late"));
  clock.advance(maxWaitMs);
  await expect(late).rejects.toBeInstanceOf(StorageUnavailableError);
  const { resolve } = writer.ready;
  writer.ready = undefined;
  resolve();
}

test("flush waits for units in progress, even after later units were refused", async () => {
  const { writer, queue } = queueOnHeldWriter({ maxWaitMs: 5 });
  let flushed = false;
  const sent = queue.commit(entryUnit("sent"));
  await nextTurn();
  const flush = queue.flush().then(() => (flushed = true));
  await queue.commit(entryUnit("later")).catch(() => undefined);
  expect(flushed).toBe(false);
  await writer.finish();
  await Promise.all([sent, flush]);
});

test("no batch is sent until the writer is ready", async () => {
  const { writer, queue } = queueOnHeldWriter();
  writer.ready = Promise.withResolvers();
  const commit = queue.commit(entryUnit("a"));
  await nextTurn();
  expect(writer.batches).toEqual([]);
  const { resolve } = writer.ready;
  writer.ready = undefined;
  resolve();
  await nextTurn();
  await writer.finish();
  await commit;
});

test("a full queue refuses units at once", async () => {
  const { writer, queue } = queueOnHeldWriter({ maxPendingUnits: 2 });
  const commits = [queue.commit(entryUnit("a")), queue.commit(entryUnit("b"))];
  expect(await queue.commit(entryUnit("c")).catch((error: unknown) => error)).toBeInstanceOf(
    StorageUnavailableError,
  );
  await nextTurn();
  await writer.finish();
  await Promise.all(commits);
});

test("a closed queue settles its units and refuses new ones", async () => {
  const { writer, queue } = queueOnHeldWriter();
  const commit = queue.commit(entryUnit("a"));
  const closed = queue.close();
  expect(await queue.commit(entryUnit("b")).catch((error: unknown) => error)).toBeInstanceOf(
    StorageUnavailableError,
  );
  await nextTurn();
  await writer.finish();
  await Promise.all([commit, closed]);
});

test("a queue is stalled while its oldest unit waits too long", async () => {
  const clock = new FakeClock();
  const { writer, queue } = queueOnHeldWriter({ clock, stalledAfterMs: 1_000 });
  expect(queue.stalled).toBe(false);
  const commit = queue.commit(entryUnit("a"));
  await nextTurn();
  clock.advance(1_000);
  expect(queue.stalled).toBe(false);
  clock.advance(1);
  expect(queue.stalled).toBe(true);
  await writer.finish();
  await commit;
  expect(queue.stalled).toBe(false);
});

test("a commit of four seconds does not close the queue, one beyond the commit timeout does", async () => {
  const clock = new FakeClock();
  const { writer, queue } = queueOnHeldWriter({ clock });
  const commit = queue.commit(entryUnit("a"));
  await nextTurn();
  clock.advance(4_000);
  expect([queue.stalled, queue.admits()]).toEqual([false, true]);
  clock.advance(1_001);
  expect([queue.stalled, queue.admits()]).toEqual([true, false]);
  await writer.finish();
  await commit;
  expect([queue.stalled, queue.admits()]).toEqual([false, true]);
});

test("a unit that the database refuses for its content is not an outage", async () => {
  const { writer, queue } = queueOnHeldWriter();
  const refused = queue.commit(entryUnit("refused"));
  await nextTurn();
  void writer.finish([{ index: 0, error: new Error("not unique") }]);
  await expect(refused).rejects.toThrow("not unique");
  const next = queue.commit(entryUnit("next"));
  expect(queue.stalled).toBe(false);
  await nextTurn();
  await writer.finish();
  await next;
});

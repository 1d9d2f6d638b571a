import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { entryUnit, nextTurn, queueOnHeldWriter } from "../../../test/support/held-writer.ts";
import { DatabaseError, StorageUnavailableError } from "./storage-error.ts";

const away = new StorageUnavailableError("read-only");

test("units that the database could not take are retried before later ones, and none are admitted", async () => {
  const { writer, queue } = queueOnHeldWriter({ retryMs: 1 });
  const [first, second] = [queue.commit(entryUnit("first")), queue.commit(entryUnit("second"))];
  await nextTurn();
  expect(queue.admits()).toBe(true);
  void writer.fail(away);
  await nextTurn();
  expect([queue.stalled, queue.admits()]).toEqual([true, false]);
  const later = queue.commit(entryUnit("later"));
  await writer.sent(2);
  expect(writer.batches[1]).toEqual(["first", "second", "later"]);
  await writer.finish();
  await Promise.all([first, second, later]);
  expect([queue.stalled, queue.admits(), queue.rejectedCount]).toEqual([false, true, 0]);
});

test("units of a batch that the database took resolve at once, and only the others are retried", async () => {
  const { writer, queue } = queueOnHeldWriter({ retryMs: 1 });
  const [stands, waits] = [queue.commit(entryUnit("stands")), queue.commit(entryUnit("waits"))];
  await nextTurn();
  await writer.finish([{ index: 1, error: away }]);
  await stands;
  await writer.sent(2);
  expect(writer.batches[1]).toEqual(["waits"]);
  await writer.finish();
  await waits;
});

test("units expire during an outage; probes detect its end, then one trial per second is admitted", async () => {
  const clock = new FakeClock();
  const { writer, queue } = queueOnHeldWriter({ clock, retryMs: 1, maxWaitMs: 5_000 });
  const lost = queue.commit(entryUnit("lost"));
  await nextTurn();
  clock.advance(5_000);
  writer.probeFailure = away;
  void writer.fail(away);
  await expect(lost).rejects.toThrow("read-only");
  expect([queue.pendingCount, queue.rejectedCount, queue.stalled]).toEqual([0, 1, true]);
  await writer.probed(3);
  expect([queue.stalled, await queue.takesWrites()]).toEqual([true, false]);
  writer.probeFailure = undefined;
  while (queue.stalled) await nextTurn();
  expect([queue.admits(), queue.admits()]).toEqual([true, false]);
  clock.advance(1_000);
  expect([queue.admits(), queue.admits()]).toEqual([true, false]);
  const trial = queue.commit(entryUnit("trial"));
  await nextTurn();
  await writer.finish();
  await trial;
  expect([queue.admits(), queue.admits()]).toEqual([true, true]);
});

test("a failed trial closes the queue again, whatever the reason", async () => {
  const clock = new FakeClock();
  const { writer, queue } = queueOnHeldWriter({ clock, retryMs: 1 });
  writer.probeFailure = away;
  expect(await queue.takesWrites()).toBe(false);
  writer.probeFailure = undefined;
  while (!queue.admits()) await nextTurn();
  writer.probeFailure = away;
  const trial = queue.commit(entryUnit("trial"));
  await nextTurn();
  void writer.finish([{ index: 0, error: new Error("the trigger failed") }]);
  await expect(trial).rejects.toThrow("the trigger failed");
  clock.advance(10_000);
  expect(queue.admits()).toBe(false);
  await queue.close();
});

test("trials that the database refuses are a second apart, although test writes succeed", async () => {
  const clock = new FakeClock();
  const { writer, queue } = queueOnHeldWriter({ clock, retryMs: 1 });
  writer.probeFailure = away;
  expect(await queue.takesWrites()).toBe(false);
  writer.probeFailure = undefined;
  while (!queue.admits()) await nextTurn();
  const trial = queue.commit(entryUnit("trial")).catch(String);
  await nextTurn();
  void writer.finish([{ index: 0, error: new Error("the trigger failed") }]);
  expect(await trial).toContain("the trigger failed");
  while (queue.stalled) await nextTurn();
  expect(queue.admits()).toBe(false);
  clock.advance(1_000);
  expect([queue.admits(), queue.admits()]).toEqual([true, false]);
  await queue.close();
});

test("eight refused units in a row are an outage, unless their errors are known", async () => {
  const { writer, queue } = queueOnHeldWriter({ retryMs: 1 });
  writer.probeFailure = away;
  const refuse = async (error: Error): Promise<void> => {
    const refused = queue.commit(entryUnit("refused"));
    await nextTurn();
    void writer.finish([{ index: 0, error }]);
    await expect(refused).rejects.toThrow(error.message);
  };
  const known = new DatabaseError("not unique", "23505");
  for (let count = 0; count < 20; count += 1) await refuse(known);
  expect(queue.admits()).toBe(true);
  for (let count = 0; count < 7; count += 1) await refuse(new Error("the trigger failed"));
  expect(queue.admits()).toBe(true);
  await refuse(new Error("the trigger failed"));
  expect(queue.admits()).toBe(false);
  await queue.close();
});

test("takesWrites probes at most once a second, and a failed probe closes the queue", async () => {
  const clock = new FakeClock();
  const { writer, queue } = queueOnHeldWriter({ clock, retryMs: 1 });
  expect(await Promise.all([queue.takesWrites(), queue.takesWrites()])).toEqual([true, true]);
  clock.advance(999);
  expect(await queue.takesWrites()).toBe(true);
  expect(writer.probeCount).toBe(1);
  clock.advance(1);
  writer.probeFailure = away;
  expect(await queue.takesWrites()).toBe(false);
  expect([writer.probeCount, queue.admits()]).toEqual([2, false]);
  await queue.close();
});

test("an outage is logged once with its cause, and once when it ends", async () => {
  const lines: string[] = [];
  const note = (_fields: object, message: string): void => void lines.push(message);
  const { writer, queue } = queueOnHeldWriter({
    retryMs: 1,
    logger: { info: note, warn: note, error: note },
  });
  const commits = Array.from({ length: 50 }, (_, ordinal) =>
    queue.commit(entryUnit(`unit-${ordinal}`)),
  );
  for (let count = 1; count < 6; count += 1) {
    await writer.sent(count);
    void writer.fail(away);
    await nextTurn();
  }
  await writer.sent(6);
  await writer.finish();
  await Promise.all(commits);
  expect(lines).toEqual([
    "commits rejected: read-only; inference is refused with 503 until the database takes them again",
    "the database takes commits again",
  ]);
});

test("a suspended queue rejects every flush until the units in progress are settled", async () => {
  const { writer, queue } = queueOnHeldWriter();
  const first = queue.commit(entryUnit("first"));
  await writer.sent(1);
  const flushed = queue.flush();
  queue.suspend("no answer");
  await expect(flushed).rejects.toThrow(StorageUnavailableError);
  await expect(queue.flush()).rejects.toThrow("no answer");
  expect(queue.admits()).toBe(false);
  await writer.finish();
  await first;
  await queue.flush();
  expect(queue.admits()).toBe(true);
});

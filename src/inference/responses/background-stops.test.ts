import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import {
  callerWith,
  namesIn,
  readAll,
  ScriptedBackground,
  type ScriptedRun,
} from "../../../test/support/scripted-background.ts";
import {
  answer,
  engines,
  newResponse,
  queuedJob,
  recordOf,
  responseId,
  type OpenedStores,
  storesOn,
} from "../../../test/support/stored-responses.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { SharedStateAwayError } from "../../platform/shared-state/shared-state-error.ts";
import { StorageUnavailableError } from "../../platform/storage/storage-error.ts";
import { BackgroundRunner, type BackgroundRunnerOptions } from "./background-runner.ts";

const id = responseId(1);

/**
 * What the spine does when it is stopped: nothing more comes, and what it was asked for rejects.
 */
const rejectsWhenStopped = (run: ScriptedRun): void =>
  run.signal.addEventListener("abort", () => run.reject(run.signal.reason));

describe.each(engines)("stopping background responses on %s", (engine) => {
  const stores = storesOn(engine);
  const runnerOn = (
    { responses, jobs }: OpenedStores,
    changes: Partial<BackgroundRunnerOptions> = {},
  ) => {
    const script = new ScriptedBackground();
    const runner = new BackgroundRunner({
      responses,
      jobs,
      run: script.run,
      callerOf: callerWith,
      clock: new FakeClock(5_000),
      onError: () => undefined,
      ...changes,
    });
    return { runner, script };
  };
  const find = async (wanted = id) => {
    const response = await stores.current().responses.find("ws_a", wanted);
    return response === undefined
      ? undefined
      : { ...response, record: JSON.parse(response.recordText) as Record<string, unknown> };
  };

  test("aborts the run on cancellation and ends its followers; a second cancellation has no effect", async () => {
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id));
    const run = await script.nth(1);
    rejectsWhenStopped(run);
    run.event("response.created");
    const followed = readAll(runner.follow(id, -1));
    await Promise.all([runner.cancel(id), runner.cancel(id)]);
    const cancelled = await find();
    expect(cancelled).toMatchObject({
      status: "cancelled",
      completedAtMs: 5_000,
      record: { status: "cancelled", error: null },
    });
    const frames = await followed;
    expect(namesIn(frames)).toEqual(["0 response.created", "1 response.failed"]);
    expect(frames).toContain('"status":"cancelled"');
    await runner.cancel(id);
    expect(await find()).toEqual(cancelled);
  });

  test("keeps the output that a cancelled run still delivers", async () => {
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id));
    const run = await script.nth(1);
    run.signal.addEventListener("abort", () => {
      const error = { code: "x", message: "stopped" };
      run.event("response.failed", {
        response: recordOf(id, { output: [answer("msg_half", "Hal")], error }),
      });
      run.resolve();
    });
    await runner.cancel(id);
    expect(await find()).toMatchObject({
      status: "cancelled",
      record: { error: null, output: [{ id: "msg_half" }] },
    });
    expect(namesIn(await readAll(runner.follow(id, -1)))).toEqual([
      "0 response.created",
      "1 response.failed",
    ]);
  });

  test("keeps a response that was complete when it was cancelled", async () => {
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id));
    const run = await script.nth(1);
    run.signal.addEventListener("abort", () => run.complete("whole"));
    await runner.cancel(id);
    expect(await find()).toMatchObject({ status: "completed", record: { output_text: "whole" } });
  });

  test("ends a run that ignores its signal, and ignores its later events", async () => {
    const { runner, script } = runnerOn(stores.current(), { stopPatienceMs: 1 });
    await runner.submit(queuedJob(id));
    const run = await script.nth(1);
    await runner.cancel(id);
    expect(await find()).toMatchObject({ status: "cancelled" });
    run.event("response.output_text.delta");
    run.complete();
    await runner.untilIdle();
    expect(await find()).toMatchObject({ status: "cancelled" });
    expect(namesIn(await readAll(runner.follow(id, -1)))).toEqual([
      "0 response.created",
      "1 response.failed",
    ]);
  });

  test("cancels a queued job without a run, and a job that no runner holds", async () => {
    const { runner, script } = runnerOn(stores.current(), { runningMax: 1 });
    for (const number of [1, 2]) await runner.submit(queuedJob(responseId(number)));
    await stores.current().responses.insert(queuedJob(responseId(3)));
    const run = await script.nth(1);
    const followed = readAll(runner.follow(responseId(2), -1));
    for (const number of [2, 3]) await runner.cancel(responseId(number));
    expect(namesIn(await followed)).toEqual(["0 response.created", "1 response.failed"]);
    run.complete();
    await runner.untilIdle();
    expect(script.begun).toHaveLength(1);
    for (const number of [2, 3])
      expect(await find(responseId(number))).toMatchObject({ status: "cancelled" });
  });

  test("does not run a job that is cancelled while it is being taken", async () => {
    const { jobs } = stores.current();
    const gate = Promise.withResolvers<void>();
    const take = jobs.take.bind(jobs);
    jobs.take = async (taken) => {
      await gate.promise;
      return take(taken);
    };
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id));
    const cancelled = runner.cancel(id);
    gate.resolve();
    await cancelled;
    expect(script.begun).toEqual([]);
    expect(await find()).toMatchObject({ status: "cancelled" });
  });

  test("keeps a job in the queue, however long it cannot be taken, until it is cancelled or taken", async () => {
    const { jobs } = stores.current();
    const take = jobs.take.bind(jobs);
    const [asked, cancelled] = [Promise.withResolvers<void>(), responseId(2)];
    let [refusals, isAway] = [0, true];
    jobs.take = (taken) => {
      refusals += 1;
      if (refusals === 150) asked.resolve();
      return isAway ? Promise.reject(new Error("the shared state is away")) : take(taken);
    };
    const { runner, script } = runnerOn(stores.current(), { retryEveryMs: 1 });
    for (const job of [id, cancelled]) await runner.submit(queuedJob(job));
    await asked.promise;
    expect([await find(), await find(cancelled)]).toMatchObject([
      { status: "queued" },
      { status: "queued" },
    ]);
    await runner.cancel(cancelled);
    expect(await find(cancelled)).toMatchObject({ status: "cancelled" });
    isAway = false;
    (await script.nth(1)).complete();
    await runner.untilIdle();
    expect(script.begun).toHaveLength(1);
    expect(await find()).toMatchObject({ status: "completed" });
  });

  test.each([
    ["the shared state", new SharedStateAwayError("away")],
    [
      "a hold",
      new GatewayError("service_unavailable", "x", { metadata: { reason: "shared_state_away" } }),
    ],
    ["the database", new StorageUnavailableError("away")],
  ])("runs a job again that found %s away before anything came", async (_, outage) => {
    const { runner, script } = runnerOn(stores.current(), { retryEveryMs: 1 });
    await runner.submit(queuedJob(id));
    (await script.nth(1)).reject(outage);
    const again = await script.nth(2);
    expect([again.job.run, again.job.mayHaveActed]).toEqual([2, false]);
    again.event("response.created");
    again.reject(outage);
    await runner.untilIdle();
    expect(script.begun).toHaveLength(2);
    expect(await find()).toMatchObject({ status: "failed" });
  });

  test("a job that finds the database away is run again, however long it is away", async () => {
    const { jobs } = stores.current();
    const requeue = jobs.requeue.bind(jobs);
    let refusals = 0;
    jobs.requeue = (returned) => {
      refusals += 1;
      if (refusals <= 100) return Promise.reject(new StorageUnavailableError("away"));
      return requeue(returned);
    };
    const { runner, script } = runnerOn(stores.current(), { retryEveryMs: 1 });
    await runner.submit(queuedJob(id));
    (await script.nth(1)).reject(new StorageUnavailableError("away"));
    (await script.nth(2)).complete();
    await runner.untilIdle();
    expect(await find()).toMatchObject({ status: "completed" });
  });

  test("a job is run whose taking the database did, and did not answer", async () => {
    const { jobs } = stores.current();
    const take = jobs.take.bind(jobs);
    let isLost = true;
    jobs.take = async (...asked) => {
      const taken = await take(...asked);
      if (!isLost) return taken;
      isLost = false;
      throw new StorageUnavailableError("the connection was lost");
    };
    const { runner, script } = runnerOn(stores.current(), { retryEveryMs: 1 });
    await runner.submit(queuedJob(id));
    (await script.nth(1)).complete();
    await runner.untilIdle();
    expect(await find()).toMatchObject({ status: "completed" });
  });

  test("a job of yesterday fails where it finds the database away", async () => {
    const clock = new FakeClock(1_001 + dayMs);
    const { runner, script } = runnerOn(stores.current(), { retryEveryMs: 1, clock });
    await runner.submit(queuedJob(id));
    (await script.nth(1)).reject(new StorageUnavailableError("away"));
    await runner.untilIdle();
    expect(script.begun).toHaveLength(1);
    expect(await find()).toMatchObject({ status: "failed" });
  });

  test("a job that waits for its next run is left to the next process", async () => {
    const { jobs } = stores.current();
    const requeue = jobs.requeue.bind(jobs);
    const returned = Promise.withResolvers<void>();
    jobs.requeue = (job) => requeue(job).then(returned.resolve);
    const { runner, script } = runnerOn(stores.current(), { retryEveryMs: 600_000 });
    await runner.submit(queuedJob(id));
    (await script.nth(1)).reject(new StorageUnavailableError("away"));
    await returned.promise;
    runner.drain();
    await runner.untilIdle();
    expect(await find()).toMatchObject({ status: "queued" });
  });

  test("leaves a job that cannot be taken to the next process", async () => {
    const { jobs } = stores.current();
    const asked = Promise.withResolvers<void>();
    jobs.take = () => {
      asked.resolve();
      return Promise.reject(new Error("the shared state is away"));
    };
    const { runner } = runnerOn(stores.current(), { retryEveryMs: 1 });
    await runner.submit(queuedJob(id));
    await asked.promise;
    await runner.stop();
    expect(await find()).toMatchObject({ status: "queued", completedAtMs: null });
  });

  test("stores no response that was deleted while it ran", async () => {
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id));
    const run = await script.nth(1);
    await stores.current().responses.delete("ws_a", id);
    run.event("response.created");
    run.complete();
    await runner.untilIdle();
    expect(await find()).toBeUndefined();
  });

  test("runs queued jobs after a crash, and interrupted ones from the start without their old events", async () => {
    const { responses, jobs } = stores.current();
    for (const number of [1, 2]) await responses.insert(queuedJob(responseId(number)));
    await responses.insert(newResponse(responseId(3), { background: true }));
    await jobs.take(id);
    await jobs.append(
      id,
      ["response.created", "response.in_progress"].map((name, sequenceNumber) => ({
        sequenceNumber,
        name,
        data: JSON.stringify({ old: true, sequence_number: sequenceNumber }),
      })),
    );
    const { runner, script } = runnerOn(await stores.reopen());
    await runner.start();
    const [first, second] = [await script.nth(1), await script.nth(2)];
    // Both are taken at the same time, in any order.
    expect([first, second].map(({ job }) => job.responseId).toSorted()).toEqual([
      id,
      responseId(2),
    ]);
    for (const run of [first, second]) {
      run.event("response.created");
      run.complete();
    }
    await runner.untilIdle();
    const frames = await readAll(runner.follow(id, -1));
    expect(frames).not.toContain("old");
    expect(namesIn(frames)).toEqual([
      "0 response.created",
      "1 response.completed",
      "2 response.service.metadata",
    ]);
    for (const number of [1, 2])
      expect(await find(responseId(number))).toMatchObject({ status: "completed" });
    expect(script.begun).toHaveLength(2);
  });

  test("starts no jobs while draining, releases followers of queued jobs, and finishes running ones", async () => {
    const { runner, script } = runnerOn(stores.current(), { runningMax: 1 });
    for (const number of [1, 2]) await runner.submit(queuedJob(responseId(number)));
    const run = await script.nth(1);
    const followers = [1, 2].map((number) => readAll(runner.follow(responseId(number), -1)));
    runner.drain();
    await runner.submit(queuedJob(responseId(3)));
    expect(await followers[1]).toBe("");
    run.complete();
    await runner.untilIdle();
    expect(namesIn((await followers[0]) ?? "")).toEqual([
      "0 response.completed",
      "1 response.service.metadata",
    ]);
    expect(script.begun).toHaveLength(1);
    await runner.stop();
    for (const number of [2, 3])
      expect(await find(responseId(number))).toMatchObject({ status: "queued" });
  });

  test.each([
    ["obeys its signal", true],
    ["ignores its signal", false],
  ])(
    "reruns a job from the start in the next process if its run %s at shutdown, which knows whether it acted",
    async (_, hears) => {
      const { runner, script } = runnerOn(stores.current(), { stopPatienceMs: 1 });
      await runner.submit(queuedJob(id, { requestText: "again" }));
      const run = await script.nth(1);
      if (hears) rejectsWhenStopped(run);
      run.event("response.created");
      if (hears) await run.job.beforeActing();
      const followed = readAll(runner.follow(id, -1));
      await runner.stop();
      expect(namesIn(await followed)).toEqual(["0 response.created"]);
      expect(await find()).toMatchObject({ status: "queued", completedAtMs: null });
      const next = runnerOn(await stores.reopen());
      await next.runner.start();
      const again = await next.script.nth(1);
      expect([again.job.requestText, again.job.mayHaveActed]).toEqual(["again", hears]);
      again.complete();
      await next.runner.untilIdle();
      expect(namesIn(await readAll(next.runner.follow(id, -1)))).toEqual([
        "0 response.completed",
        "1 response.service.metadata",
      ]);
    },
  );
});

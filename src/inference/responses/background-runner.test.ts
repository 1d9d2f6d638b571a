import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import {
  callerWith,
  namesIn,
  readAll,
  ScriptedBackground,
} from "../../../test/support/scripted-background.ts";
import {
  engines,
  queuedJob,
  responseId,
  type OpenedStores,
  storesOn,
} from "../../../test/support/stored-responses.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { StorageUnavailableError } from "../../platform/storage/storage-error.ts";
import { BackgroundRunner, type BackgroundRunnerOptions } from "./background-runner.ts";

const id = responseId(1);
const whole = ["0 response.created", "1 response.completed", "2 response.service.metadata"];

describe.each(engines)("the runner of background responses on %s", (engine) => {
  const stores = storesOn(engine);
  const runnerOn = (
    { responses, jobs }: OpenedStores,
    changes: Partial<BackgroundRunnerOptions> = {},
  ) => {
    const script = new ScriptedBackground();
    const errors: unknown[] = [];
    const runner = new BackgroundRunner({
      responses,
      jobs,
      run: script.run,
      callerOf: callerWith,
      clock: new FakeClock(5_000),
      onError: (error) => errors.push(error),
      ...changes,
    });
    return { runner, script, errors };
  };
  const find = async (wanted = id) => {
    const response = await stores.current().responses.find("ws_a", wanted);
    return response === undefined
      ? undefined
      : { ...response, record: JSON.parse(response.recordText) as Record<string, unknown> };
  };

  test("stores a job before it runs, marks it in progress, and stores its events and response", async () => {
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id, { requestText: "the request", presetId: "preset_a" }));
    expect(await find()).toMatchObject({ status: expect.stringMatching(/queued|in_progress/) });
    const run = await script.nth(1);
    expect(run.job).toEqual({
      responseId: id,
      createdAtMs: 1_000,
      run: 1,
      caller: callerWith("key_a"),
      requestText: "the request",
      presetId: "preset_a",
      mayHaveActed: false,
      beforeActing: expect.any(Function),
    });
    expect(await find()).toMatchObject({ status: "in_progress", completedAtMs: null });
    run.event("response.created");
    run.complete("Hello");
    await runner.untilIdle();
    expect(await find()).toMatchObject({
      status: "completed",
      completedAtMs: 5_000,
      record: { status: "completed", output_text: "Hello" },
    });
    expect(namesIn(await readAll(runner.follow(id, -1)))).toEqual(whole);
    expect(namesIn(await readAll(runner.follow(id, 0)))).toEqual(whole.slice(1));
    expect(await readAll(runner.follow(id, 2))).toBe("");
    expect(await stores.current().responses.holdersOf("ws_a", [`msg_${id}`])).toEqual(
      new Map([[`msg_${id}`, id]]),
    );
  });

  test("replays stored events byte for byte", async () => {
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id));
    const run = await script.nth(1);
    const odd = '{ "sequence_number":7 , "delta":"ü😀\\u0000\\n" }';
    run.sink.event("response.output_text.delta", odd);
    run.sink.event("response.completed", '{"response":{"id":"x","model":"m"},"sequence_number":9}');
    run.resolve();
    await runner.untilIdle();
    const text =
      `event: response.output_text.delta\ndata: ${odd}\n\n` +
      'event: response.completed\ndata: {"response":{"id":"x","model":"m"},"sequence_number":9}\n\n';
    expect(await readAll(runner.follow(id, -1))).toBe(text);
    expect(await readAll(runner.follow(id, 8))).toBe(
      text.slice(text.indexOf("event: response.completed")),
    );
    expect(await find()).toMatchObject({
      status: "completed",
      record: { id: "x", status: "completed" },
    });
  });

  test("sends a follower each event at once, and the end after the response is stored", async () => {
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id));
    const follower = runner.follow(id, -1);
    const first = follower.next();
    const run = await script.nth(1);
    run.event("response.created");
    expect(namesIn((await first) ?? "")).toEqual(["0 response.created"]);
    const second = follower.next();
    run.event("response.in_progress");
    expect(namesIn((await second) ?? "")).toEqual(["1 response.in_progress"]);
    const last = follower
      .next()
      .then(async (frames) => ({ frames, status: (await find())?.status }));
    run.complete();
    const { frames, status } = await last;
    expect(namesIn(frames ?? "")).toEqual(["2 response.completed", "3 response.service.metadata"]);
    expect(status).toBe("completed");
    expect(await follower.next()).toBeUndefined();
  });

  test("releases a follower that disconnects", async () => {
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id));
    const follower = runner.follow(id, -1);
    const next = follower.next();
    const run = await script.nth(1);
    follower.cancel();
    expect(await next).toBeUndefined();
    run.complete();
    await runner.untilIdle();
  });

  test("stores events while a job runs, and gives a late follower all events in order", async () => {
    const { jobs } = stores.current();
    const stored = Promise.withResolvers<void>();
    const append = jobs.append.bind(jobs);
    jobs.append = async (...given) => {
      await append(...given);
      stored.resolve();
    };
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id));
    const run = await script.nth(1);
    for (const name of ["response.created", "response.in_progress", "response.output_text.delta"])
      run.event(name);
    await stored.promise;
    expect((await jobs.eventsAfter(id, -1)).map(({ sequenceNumber }) => sequenceNumber)).toEqual([
      0, 1, 2,
    ]);
    run.event("response.output_text.delta");
    const follower = runner.follow(id, 0);
    const names = [
      ...namesIn((await follower.next()) ?? ""),
      ...namesIn((await follower.next()) ?? ""),
    ];
    expect(names).toEqual([
      "1 response.in_progress",
      "2 response.output_text.delta",
      "3 response.output_text.delta",
    ]);
    run.complete();
    expect(namesIn(await readAll(follower))).toEqual([
      "4 response.completed",
      "5 response.service.metadata",
    ]);
    expect(namesIn(await readAll(runner.follow(id, -1)))).toHaveLength(6);
  });

  test("waits for events that are being stored before the end, and stores none twice", async () => {
    const { jobs } = stores.current();
    const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const order: string[] = [];
    const [append, record] = [jobs.append.bind(jobs), jobs.record.bind(jobs)];
    jobs.append = async (...given) => {
      reached.resolve();
      await gate.promise;
      await append(...given);
      order.push("events are stored");
    };
    jobs.record = (...given) => {
      order.push("the end begins");
      return record(...given);
    };
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id));
    const run = await script.nth(1);
    run.event("response.created");
    await reached.promise;
    run.complete();
    gate.resolve();
    await runner.untilIdle();
    expect(order).toEqual(["events are stored", "the end begins"]);
    expect(namesIn(await readAll(runner.follow(id, -1)))).toEqual(whole);
  });

  test("runs at most runningMax jobs, in order of submission", async () => {
    const { runner, script } = runnerOn(stores.current(), { runningMax: 2 });
    for (const number of [1, 2, 3, 4]) await runner.submit(queuedJob(responseId(number)));
    await script.nth(2);
    expect(await find(responseId(3))).toMatchObject({ status: "queued" });
    expect(script.begun).toHaveLength(2);
    (await script.nth(2)).complete();
    const third = await script.nth(3);
    expect(third.job.responseId).toBe(responseId(3));
    expect(script.begun).toHaveLength(3);
    third.complete();
    (await script.nth(4)).complete();
    (await script.nth(1)).complete();
    await runner.untilIdle();
    expect(await find(responseId(4))).toMatchObject({ status: "completed" });
  });

  const failures: [string, unknown, Record<string, unknown>][] = [
    [
      "a refusal",
      new GatewayError("rate_limit_exceeded", "Too many."),
      { code: "rate_limit_exceeded", message: "Too many." },
    ],
    [
      "a refusal with a time to wait",
      new GatewayError("rate_limit_exceeded", "Too many.", { retryAfterSeconds: 7 }),
      { code: "rate_limit_exceeded", message: "Too many. Please try again in 7s." },
    ],
    [
      "a provider's failure",
      new GatewayError("upstream_error", "The provider failed."),
      { code: "server_error", message: "The provider failed." },
    ],
    [
      "a want of credits",
      new GatewayError("insufficient_balance", "There are no credits."),
      { code: "insufficient_quota", message: "There are no credits." },
    ],
    [
      "a mistake of ours, of which nothing is told",
      new TypeError("secret"),
      {
        code: "server_error",
        message: expect.not.stringContaining("secret"),
      },
    ],
  ];
  test.each(failures)("fails the job with a matching event after %s", async (_, thrown, error) => {
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id));
    const run = await script.nth(1);
    run.event("response.created");
    run.reject(thrown);
    await runner.untilIdle();
    expect(await find()).toMatchObject({
      status: "failed",
      record: { id, status: "failed", error },
    });
    const frames = await readAll(runner.follow(id, -1));
    expect(namesIn(frames)).toEqual(["0 response.created", "1 response.failed"]);
    expect(JSON.parse(frames.slice(frames.lastIndexOf("data: ") + 6))).toMatchObject({
      response: { id, status: "failed", error },
    });
  });

  test("fails a run without a terminal event", async () => {
    const { runner, script } = runnerOn(stores.current());
    await runner.submit(queuedJob(id));
    (await script.nth(1)).resolve();
    await runner.untilIdle();
    expect(await find()).toMatchObject({
      status: "failed",
      record: { error: { code: "server_error" } },
    });
  });

  test("fails a job without a run if its key was revoked or disabled", async () => {
    const { runner, script } = runnerOn(stores.current(), { callerOf: () => undefined });
    await runner.submit(queuedJob(id));
    await runner.untilIdle();
    expect(script.begun).toEqual([]);
    expect(await find()).toMatchObject({
      status: "failed",
      record: { error: { code: "server_error" } },
    });
  });

  test.each([
    ["refuses it", 2, new Error("refused")],
    ["is away, however long", 100, new StorageUnavailableError("away")],
  ])("retries the final write if the database %s", async (_, times, failure) => {
    const { jobs } = stores.current();
    const settle = jobs.settle.bind(jobs);
    let refusals = times;
    jobs.settle = (...given) => (refusals-- > 0 ? Promise.reject(failure) : settle(...given));
    const { runner, script, errors } = runnerOn(stores.current(), { retryEveryMs: 1 });
    await runner.submit(queuedJob(id));
    (await script.nth(1)).complete();
    await runner.untilIdle();
    expect(await find()).toMatchObject({ status: "completed" });
    expect(errors).toHaveLength(times);
  });
});

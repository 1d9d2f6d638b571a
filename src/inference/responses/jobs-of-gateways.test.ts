import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { pollUntil } from "../../../test/support/poll-until.ts";
import {
  callerWith,
  namesIn,
  readAll,
  ScriptedBackground,
} from "../../../test/support/scripted-background.ts";
import {
  engines,
  queuedJob,
  recordOf,
  responseId,
  storesOn,
} from "../../../test/support/stored-responses.ts";
import type { Leases } from "../../platform/shared-state/shared-leases.ts";
import { BackgroundRunner } from "./background-runner.ts";
import { JobStore } from "./job-store.ts";

/** Leases of gateways that see the same holders. */
const leasesOf = (node: string, holders: Map<string, string>): Leases => ({
  async take(name) {
    if ((holders.get(name) ?? node) !== node) return false;
    holders.set(name, node);
    return true;
  },
  holds: (name) => holders.get(name) === node,
  release: (name) => void (holders.get(name) === node && holders.delete(name)),
});

describe.each(engines)("background jobs of two gateways on %s", (engine) => {
  const stores = storesOn(engine);

  test("belong to one gateway while it lives, and are restarted by another after its death", async () => {
    const { storage, responses } = stores.current();
    const holders = new Map<string, string>();
    const [one, other] = ["one", "other"].map(
      (node) => new JobStore(storage.database, leasesOf(node, holders)),
    ) as [JobStore, JobStore];
    const [running, queued] = [responseId(1), responseId(2)];
    for (const id of [running, queued]) await responses.insert(queuedJob(id));
    expect(await one.take(running)).toMatchObject({ keyId: "key_a" });
    expect(await other.take(running)).toBeUndefined();
    expect([await other.recover(), await one.recover()]).toEqual([[queued], [queued]]);
    holders.clear();
    // Its gateway still runs it, though its lease is gone.
    expect(await one.recover((id) => id === running)).toEqual([queued]);
    expect(await other.recover()).toEqual([running, queued]);
    expect([await other.take(running), await one.take(running)]).toMatchObject([
      { keyId: "key_a" },
      undefined,
    ]);
  });

  test("stay at their gateway between two runs, and are any gateway's where it leaves them", async () => {
    const { storage, responses } = stores.current();
    const holders = new Map<string, string>();
    const [one, other] = ["one", "other"].map(
      (node) => new JobStore(storage.database, leasesOf(node, holders)),
    ) as [JobStore, JobStore];
    const id = responseId(1);
    await responses.insert(queuedJob(id));
    await one.take(id);
    await one.requeue(id, { keeps: true });
    expect(await other.take(id)).toBeUndefined();
    expect(await one.take(id)).toMatchObject({ run: 2 });
    await one.requeue(id);
    expect(await other.take(id)).toMatchObject({ run: 3 });
  });

  /** Returns a gateway with a runner of its own. */
  function gateway(node: string, holders: Map<string, string>) {
    const { storage, responses } = stores.current();
    const script = new ScriptedBackground();
    const jobs = new JobStore(storage.database, leasesOf(node, holders));
    const clock = new FakeClock(5_000);
    const runner = new BackgroundRunner({
      ...{ responses, jobs, clock, run: script.run, callerOf: callerWith },
      ...{ onError: () => undefined, lookEveryMs: 1 },
    });
    return { jobs, runner, script };
  }

  test("are followed at any gateway until they end", async () => {
    const holders = new Map<string, string>();
    const [one, other] = [gateway("one", holders), gateway("other", holders)];
    const id = responseId(1);
    await one.runner.submit(queuedJob(id));
    const followed = readAll(other.runner.follow(id, -1));
    const run = await one.script.nth(1);
    run.event("response.created");
    run.complete();
    await one.runner.untilIdle();
    expect(namesIn(await followed)).toEqual([
      "0 response.created",
      "1 response.completed",
      "2 response.service.metadata",
    ]);
    expect(other.script.begun).toEqual([]);
  });

  test("are stopped where they run once another gateway has cancelled them", async () => {
    const holders = new Map<string, string>();
    const [one, other] = [gateway("one", holders), gateway("other", holders)];
    const id = responseId(1);
    await one.runner.submit(queuedJob(id));
    const run = await one.script.nth(1);
    run.signal.addEventListener("abort", () => run.reject(run.signal.reason));
    for (const name of ["response.created", "response.in_progress"]) run.event(name);
    await pollUntil(async () => (await one.jobs.lastSequence(id)) === 1);
    const followed = readAll(one.runner.follow(id, -1));
    await other.runner.cancel(id);
    await one.runner.untilIdle();
    expect(run.signal.aborted).toBe(true);
    expect((await stores.current().responses.find("ws_a", id))?.status).toBe("cancelled");
    expect(namesIn(await followed)).toEqual([
      "0 response.created",
      "1 response.in_progress",
      "10002 response.failed",
    ]);
  });

  test("leave the followers of a gateway that ends", async () => {
    const holders = new Map<string, string>();
    const [one, other] = [gateway("one", holders), gateway("other", holders)];
    await one.runner.submit(queuedJob(responseId(1)));
    (await one.script.nth(1)).event("response.created");
    const followed = readAll(other.runner.follow(responseId(1), 0));
    other.runner.drain();
    expect(await followed).toBe("");
    (await one.script.nth(1)).complete();
    await one.runner.untilIdle();
  });

  test("keep the events of a response that ends before it is returned to the queue", async () => {
    const { responses, jobs } = stores.current();
    const id = responseId(1);
    await responses.insert(queuedJob(id));
    await jobs.take(id);
    const ended = { sequenceNumber: 0, name: "response.completed", data: "{}" };
    await jobs.settle(id, {
      status: "completed",
      record: recordOf(id),
      completedAtMs: 2_000,
      events: [ended],
    });
    await jobs.requeue(id);
    expect((await responses.find("ws_a", id))?.status).toBe("completed");
    expect(await jobs.eventsAfter(id, -1)).toEqual([ended]);
  });
});

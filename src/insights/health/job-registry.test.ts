import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { hourMs, minuteMs } from "../../platform/kernel/clock.ts";
import { JobRegistry } from "./job-registry.ts";

test("reports omit jobs that never ran; others are healthy, failing, or stale after twice their period", async () => {
  const clock = new FakeClock();
  const jobs = new JobRegistry(clock);
  expect(jobs.reports()).toEqual([]);
  jobs.ran("generation_retention", true);
  jobs.ran("hold_expiry", true);
  clock.advance(90 * minuteMs);
  jobs.ran("smoke_tests", false, "One provider could not be asked.");
  expect(
    jobs
      .reports()
      .map(
        ({ kind, state, last_status, age_hours }) =>
          [kind, state, last_status, age_hours] as unknown,
      ),
  ).toEqual([
    ["hold_expiry", "stale", "succeeded", 1.5],
    ["generation_retention", "healthy", "succeeded", 1.5],
    ["smoke_tests", "failing", "failed", 0],
  ]);
  clock.advance(hourMs);
  expect(jobs.reports()[2]).toEqual({
    kind: "smoke_tests",
    label: "Smoke tests",
    state: "failing",
    last_status: "failed",
    last_run_at: "2026-11-21T13:30:00.000Z",
    age_hours: 1,
    detail: "One provider could not be asked.",
  });
});

test("a run reports its result without the text of the error", async () => {
  const jobs = new JobRegistry(new FakeClock());
  const errors: unknown[] = [];
  const broken = async (): Promise<void> => {
    throw new Error("connection to db.internal refused");
  };
  await jobs.run("network_statistics", broken, (error) => errors.push(error));
  expect(jobs.reports()[0]).toMatchObject({ state: "failing", detail: "The last run failed." });
  await jobs.run(
    "network_statistics",
    async () => undefined,
    (error) => errors.push(error),
  );
  expect(jobs.reports()[0]).toMatchObject({ state: "healthy", detail: null });
  expect(errors).toHaveLength(1);
});

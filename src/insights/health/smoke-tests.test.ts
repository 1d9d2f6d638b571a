import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { openInsightStorage } from "../../../test/support/generation-records.ts";
import { dayMs, hourMs, minuteMs } from "../../platform/kernel/clock.ts";
import { type SmokeAnswer, SmokeTests, lastDailyRun } from "./smoke-tests.ts";
import { SmokeStore } from "./smoke-store.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-smoke-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Providers that answer as the test says, on a clock that stands at noon. */
async function openStage(
  path: string,
  {
    answers,
    clock = new FakeClock(),
  }: { answers: Record<string, SmokeAnswer[]>; clock?: FakeClock },
) {
  const storage = await openInsightStorage(`sqlite:${join(root, path)}`);
  const [asked, signals]: [string[], string[]] = [[], []];
  const tests = await SmokeTests.open({
    store: new SmokeStore(withTables(storage.database)),
    clock,
    onSignal: (id, signal) => void signals.push(`${id} ${signal}`),
    port: {
      providerIds: () => Object.keys(answers),
      async ask(id) {
        asked.push(id);
        return answers[id]?.shift() ?? { outcome: "passed", latencyMs: 12.4 };
      },
    },
  });
  return { tests, clock, asked, signals, storage };
}

const failure: SmokeAnswer = { outcome: "failed", message: "it answered 500" };

test("the first start waits for the daily time, then tests every provider once a day", async () => {
  const { tests, clock, asked, storage } = await openStage("daily.db", {
    answers: { a: [], b: [] },
  });
  expect(tests.due()).toEqual([]);
  clock.advance(16 * hourMs + 17 * minuteMs - 1);
  expect(tests.due()).toEqual([]);
  clock.advance(1);
  expect(tests.due()).toEqual(["a", "b"]);
  await tests.run(tests.due());
  expect(asked).toEqual(["a", "b"]);
  expect(tests.due()).toEqual([]);
  expect(tests.current().map(({ outcome, latencyMs }) => `${outcome} ${latencyMs}`)).toEqual([
    "passed 12",
    "passed 12",
  ]);
  clock.advance(dayMs);
  expect(tests.due()).toEqual(["a", "b"]);
  await storage.close();
});

test("a failure is retried at once, and ignored if the second attempt passes", async () => {
  const { tests, asked, signals, storage } = await openStage("once.db", {
    answers: { a: [failure] },
  });
  await tests.run(["a"]);
  expect(asked).toEqual(["a", "a"]);
  expect(signals).toEqual(["a smoke-passed"]);
  await storage.close();
});

test("a failed provider is tested every hour until it passes, also after a restart", async () => {
  const answers = {
    a: [failure, failure, failure, failure],
    b: [],
    c: [{ outcome: "skipped" as const, message: "no model that chats" }],
  };
  const first = await openStage("failed.db", { answers });
  await first.tests.run(["a", "b", "c"]);
  expect(first.signals).toEqual(["a smoke-failed", "b smoke-passed"]);
  first.clock.advance(hourMs - 1);
  expect(first.tests.due()).toEqual([]);
  await first.storage.close();
  const second = await openStage("failed.db", { answers, clock: first.clock });
  expect(second.signals).toEqual(["a smoke-failed"]);
  expect(
    second.tests
      .current()
      .map(({ providerId, outcome, message }) => [providerId, outcome, message] as unknown),
  ).toEqual([
    ["a", "failed", "it answered 500"],
    ["b", "passed", null],
    ["c", "skipped", "no model that chats"],
  ]);
  expect(second.tests.lastRun).toBe(Date.UTC(2026, 10, 21, 12));
  second.clock.advance(1);
  expect(second.tests.due()).toEqual(["a"]);
  await second.tests.run(["a"]);
  second.clock.advance(hourMs);
  await second.tests.run(second.tests.due());
  expect(second.signals).toEqual(["a smoke-failed", "a smoke-failed", "a smoke-passed"]);
  expect(second.tests.due()).toEqual([]);
  await second.storage.close();
});

test("a probe asks once at a time, and reports its outcome like traffic", async () => {
  const { tests, asked, signals, storage } = await openStage("probe.db", {
    answers: { a: [failure] },
  });
  await Promise.all([tests.probe("a"), tests.probe("a"), tests.probe("stranger")]);
  await tests.probe("a");
  expect(asked).toEqual(["a", "a"]);
  expect(signals).toEqual(["a outage", "a served"]);
  expect(tests.current()).toEqual([]);
  await storage.close();
});

test.each([
  ["2026-11-21T04:16:59.999Z", "2026-11-20T04:17:00.000Z"],
  ["2026-11-21T04:17:00.000Z", "2026-11-21T04:17:00.000Z"],
  ["2026-11-21T23:59:59.000Z", "2026-11-21T04:17:00.000Z"],
])("at %s the last run was due at %s", (now, expected) => {
  expect(new Date(lastDailyRun("17 4 * * *", Date.parse(now))).toISOString()).toBe(expected);
});

test("lastDailyRun throws for a schedule that is not daily", () => {
  expect(() => lastDailyRun("*/5 * * * *", 0)).toThrow("minute and hour of every day");
});

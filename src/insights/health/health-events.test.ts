import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { openInsightStorage } from "../../../test/support/generation-records.ts";
import { migratedDatabase } from "../../../test/support/postgres.ts";
import { HealthEvents } from "./health-events.ts";
import { ProviderStates } from "./provider-states.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-events-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const engines: [string, () => Promise<string>][] = [
  ["SQLite", async () => `sqlite:${join(root, "events.db")}`],
  ["Postgres", migratedDatabase],
];

async function openStage(url: string, clock: FakeClock) {
  const storage = await openInsightStorage(url);
  const errors: unknown[] = [];
  const events = await HealthEvents.open({
    database: withTables(storage.database),
    clock,
    onError: (error) => errors.push(error),
  });
  const states = new ProviderStates({
    clock,
    known: events.lastStatuses(),
    onChange: (change) => events.add(change),
  });
  return { storage, events, states, errors };
}

const lines = (events: HealthEvents): string[] =>
  events.shown().map(({ upstreamId, from, to }) => `${upstreamId}: ${from} -> ${to}`);

describe.each(engines)("status changes on %s", (_, freshUrl) => {
  test("are listed newest first, survive a restart, and continue from there", async () => {
    const url = await freshUrl();
    const clock = new FakeClock();
    const first = await openStage(url, clock);
    for (const id of ["a", "b"]) first.states.record(id, "served");
    for (let count = 0; count < 5; count += 1) first.states.record("a", "outage");
    const expected = ["a: healthy -> degraded", "b: unknown -> healthy", "a: unknown -> healthy"];
    expect(lines(first.events)).toEqual(expected);
    await first.events.written();
    const before = first.events.shown();
    await first.storage.close();

    const second = await openStage(url, clock);
    expect(second.events.shown()).toEqual(before);
    second.states.record("b", "served");
    expect(lines(second.events)).toEqual(expected);
    second.states.record("a", "served");
    expect(lines(second.events)).toEqual(["a: degraded -> healthy", ...expected]);
    await second.events.written();
    expect([...first.errors, ...second.errors]).toEqual([]);
    await second.storage.close();
  }, 240_000);
});

test("50 events are shown and 1,000 kept, including the last status of every provider", async () => {
  const clock = new FakeClock();
  const url = `sqlite:${join(root, "many.db")}`;
  const { storage, events } = await openStage(url, clock);
  for (let index = 0; index < 1_100; index += 1) {
    events.add({
      upstreamId: `p${index % 70}`,
      from: "healthy",
      to: index < 1_050 ? "down" : "healthy",
      message: undefined,
    });
  }
  expect(events.shown()).toHaveLength(50);
  await events.written();
  await storage.close();
  const next = await openStage(url, clock);
  expect(next.events.shown()).toHaveLength(50);
  expect(next.events.shown()[0]?.upstreamId).toBe(`p${1_099 % 70}`);
  expect(
    [...next.events.lastStatuses().values()].filter((status) => status === "healthy"),
  ).toHaveLength(50);
  expect(next.events.lastStatuses().size).toBe(70);
  const kept = await withTables<{ health_events: { id: string } }>(next.storage.database)
    .selectFrom("health_events")
    .select("id")
    .execute();
  expect(kept).toHaveLength(1_000);
  await next.storage.close();
});

test("a change that cannot be written is still shown, and the error is reported", async () => {
  const { storage, events, states, errors } = await openStage(
    `sqlite:${join(root, "closed.db")}`,
    new FakeClock(),
  );
  await storage.close();
  states.record("a", "served");
  await events.written();
  expect(lines(events)).toEqual(["a: unknown -> healthy"]);
  expect(errors).toHaveLength(1);
});

test("check reports changes that are due only to elapsed time", () => {
  const clock = new FakeClock();
  const told: string[] = [];
  const states = new ProviderStates({
    clock,
    known: new Map([["a", "healthy"]]),
    onChange: ({ upstreamId, from, to }) => void told.push(`${upstreamId}: ${from} -> ${to}`),
  });
  for (let count = 0; count < 10; count += 1) states.record("a", "outage");
  clock.advance(10_000);
  states.record("a", "outage");
  expect([states.stateOf("a"), states.stateOf("b")]).toEqual(["quarantined", undefined]);
  clock.advance(30_000);
  expect(states.onProbation()).toEqual(["a"]);
  states.check();
  clock.advance(90_000);
  states.check();
  expect(states.onProbation()).toEqual([]);
  expect(told).toEqual([
    "a: healthy -> degraded",
    "a: degraded -> down",
    "a: down -> degraded",
    "a: degraded -> healthy",
  ]);
});

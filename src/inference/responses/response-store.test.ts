import { describe, expect, jest, mock, test } from "bun:test";
import { useRealTimers } from "../../../test/support/real-timers.ts";
import {
  answer,
  engines,
  newResponse,
  question,
  queuedJob,
  recordOf,
  responseId,
  storesOn,
} from "../../../test/support/stored-responses.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { dayMs, hourMs, minuteMs } from "../../platform/kernel/clock.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import { ResponseRetention } from "./response-retention.ts";
import type { ResponseStore } from "./response-store.ts";

const id = responseId(1);

describe.each(engines)("the response store on %s", (engine) => {
  const stores = storesOn(engine);
  const store = () => stores.current().responses;

  test("returns a response as it was stored", async () => {
    const inputItems = [question("Grüße 😀 \0 \ud83d"), question("2")];
    await store().insert(newResponse(id, { previousResponseId: responseId(0), inputItems }));
    expect(await store().find("ws_a", id)).toEqual({
      id,
      workspaceId: "ws_a",
      keyId: "key_a",
      createdAtMs: 1_000,
      completedAtMs: 2_000,
      status: "completed",
      model: "acme/large",
      background: false,
      previousResponseId: responseId(0),
      recordText: JSON.stringify(recordOf(id)),
    });
    expect(await store().inputItems("ws_a", id)).toEqual(inputItems);
  });

  test("stores responses of several megabytes", async () => {
    const items = Array.from({ length: 40 }, (_, index) =>
      question(`${index} ${"ä".repeat(100_000)}`),
    );
    const output = [answer("msg_long", "x".repeat(1_000_000))];
    await store().insert(newResponse(id, { inputItems: items, record: { output } }));
    expect(await store().inputItems("ws_a", id)).toEqual(items);
    expect(JSON.parse((await store().find("ws_a", id))?.recordText ?? "")).toMatchObject({
      output,
    });
    expect(await store().holdersOf("ws_a", ["msg_long"])).toEqual(new Map([["msg_long", id]]));
    expect(await store().sizeOf("ws_a", [id])).toBeGreaterThan(9_000_000);
  });

  test("stores an id only once", async () => {
    await store().insert(newResponse(id));
    const again = await store()
      .insert(newResponse(id))
      .catch((error: unknown) => error);
    expect(isUniqueViolation(again)).toBe(true);
  });

  test("hides a response from other workspaces for reads, deletion and references", async () => {
    await store().insert(newResponse(id));
    expect(await store().find("ws_b", id)).toBeUndefined();
    expect(await store().inputItems("ws_b", id)).toBeUndefined();
    expect(await store().ancestors("ws_b", id, 10)).toEqual([]);
    expect(await store().turns("ws_b", [id])).toEqual([]);
    expect(await store().sizeOf("ws_b", [id])).toBe(0);
    expect(await store().holdersOf("ws_b", [`msg_${id}`])).toEqual(new Map());
    expect(await store().delete("ws_b", id)).toBe(false);
    expect(await store().find("ws_a", id)).toBeDefined();
  });

  test("returns nothing for an invalid response id", async () => {
    for (const odd of ["", "resp_", "resp_\0", `${id} `, "' or 1=1"]) {
      expect(await store().find("ws_a", odd)).toBeUndefined();
      expect(await store().inputItems("ws_a", odd)).toBeUndefined();
      expect(await store().delete("ws_a", odd)).toBe(false);
      expect(await store().holdersOf("ws_a", [`\0${odd}`])).toEqual(new Map());
    }
  });

  test("deletes a response with its items and events", async () => {
    await store().insert(newResponse(id));
    await stores
      .current()
      .jobs.append(id, [{ sequenceNumber: 0, name: "response.created", data: "{}" }]);
    expect(await store().delete("ws_a", id)).toBe(true);
    expect(await store().delete("ws_a", id)).toBe(false);
    const { database } = stores.current().storage;
    expect(await database.selectFrom("stored_response_items").selectAll().execute()).toEqual([]);
    expect(await database.selectFrom("stored_response_events").selectAll().execute()).toEqual([]);
  });

  test("returns ancestors newest first, up to the limit, and stops at a gap", async () => {
    for (const number of [1, 2, 3, 4]) {
      const previousResponseId = number === 1 ? null : responseId(number - 1);
      await store().insert(newResponse(responseId(number), { previousResponseId }));
    }
    const ids = async (limit: number) =>
      (await store().ancestors("ws_a", responseId(4), limit)).map((ancestor) => ancestor.id);
    expect(await ids(10)).toEqual([4, 3, 2, 1].map(responseId));
    expect(await ids(2)).toEqual([4, 3].map(responseId));
    await store().delete("ws_a", responseId(2));
    expect(await ids(10)).toEqual([4, 3].map(responseId));
    await store().insert(newResponse(responseId(2), { workspaceId: "ws_b" }));
    expect(await ids(10)).toEqual([4, 3].map(responseId));
  });

  test("returns the newest response for a shared item id", async () => {
    for (const number of [2, 3, 1]) {
      await store().insert(
        newResponse(responseId(number), {
          record: { output: [answer("msg_same", String(number))] },
        }),
      );
    }
    expect(await store().holdersOf("ws_a", ["msg_same", "msg_none"])).toEqual(
      new Map([["msg_same", responseId(3)]]),
    );
  });

  test("purges responses older than the retention in steps", async () => {
    const clock = new FakeClock();
    const idAt = (atMs: number, index: number) =>
      `resp_${atMs.toString(16).padStart(12, "0")}${index.toString(16).padStart(20, "0")}`;
    const [dueMs, keptMs] = [clock.nowMs() - 30 * dayMs - 1, clock.nowMs() - 30 * dayMs];
    const due = Array.from({ length: 250 }, (_, index) =>
      newResponse(idAt(dueMs, index), { workspaceId: index % 2 ? "ws_a" : "ws_b" }),
    );
    const kept = [newResponse(idAt(keptMs, 0)), queuedJob(idAt(keptMs, 1))];
    await Promise.all([...due, ...kept].map((response) => store().insert(response)));
    await new ResponseRetention({
      responses: store(),
      clock,
      keepDays: 30,
      onError: () => undefined,
    }).purge();
    const rows = await stores
      .current()
      .storage.database.selectFrom("stored_responses")
      .select("id")
      .orderBy("id")
      .execute();
    expect(rows.map((row) => row.id)).toEqual(kept.map((response) => response.id));
  });
});

test("responses are purged a minute after the start, and then every hour", async () => {
  const responses = { deleteBefore: mock(async () => 0) };
  const retention = new ResponseRetention({
    responses: responses as unknown as ResponseStore,
    clock: new FakeClock(),
    keepDays: 30,
    onError: () => undefined,
  });
  jest.useFakeTimers();
  try {
    retention.start();
    const purgesAfter = (ms: number): number => {
      jest.advanceTimersByTime(ms);
      return responses.deleteBefore.mock.calls.length;
    };
    expect([minuteMs - 1, 1, hourMs, hourMs].map(purgesAfter)).toEqual([0, 1, 2, 3]);
    await retention.stop();
    expect(purgesAfter(hourMs)).toBe(3);
  } finally {
    useRealTimers();
  }
});

test("a purge of responses ends at its next step once the gateway stops", async () => {
  let steps = 0;
  const responses = {
    deleteBefore: async ({ limit }: { limit: number }) => {
      steps += 1;
      return limit;
    },
  };
  const retention = new ResponseRetention({
    responses: responses as unknown as ResponseStore,
    clock: new FakeClock(),
    keepDays: 30,
    onError: () => undefined,
  });
  const purge = retention.purge();
  await retention.stop();
  await purge;
  expect(steps).toBe(1);
});

import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { BodyDeadlines } from "./body-deadlines.ts";
import { readJsonText } from "./read-body.ts";
import { BodyPace } from "./body-pace.ts";

const posted = (body: string): Request =>
  new Request("http://localhost/", {
    method: "POST",
    body,
    headers: { "content-length": String(Buffer.byteLength(body)) },
  });

/** A list of texts with so many entries, and spaces up to so many bytes. */
const listOf = (entries: number, bytes: number): string =>
  `[${Array.from({ length: entries }, () => '""').join(",")}]`.padEnd(bytes);

test.each([
  ["one piece", 200_000],
  ["pieces", 3_000_000],
])("JSON that is read in %s is bounded", async (_, bytes) => {
  const fitting = listOf(50_000, bytes);
  expect(await readJsonText(posted(fitting), 4_000_000)).toBe(fitting);
  const reading = readJsonText(posted(listOf(50_001, bytes)), 4_000_000);
  await expect(reading).rejects.toMatchObject({ code: "content_too_large" });
});

describe("a body that comes in pieces", () => {
  test("has ten seconds, and one more for every 32 KB", () => {
    const pace = new BodyPace(1_000);
    expect(pace.dueMs).toBe(11_000);
    pace.came(64 * 1024, 2_000);
    expect(pace.dueMs).toBe(13_000);
  });

  test("saves up 20 seconds at most, however much came at once", () => {
    const pace = new BodyPace(0);
    pace.came(31 * 1024 ** 2, 500);
    expect(pace.dueMs).toBe(20_500);
  });

  test("does not gain by single bytes", () => {
    const pace = new BodyPace(0);
    pace.came(31 * 1024 ** 2, 0);
    for (let nowMs = 1_000; nowMs < pace.dueMs; nowMs += 1_000) pace.came(1, nowMs);
    expect(pace.dueMs).toBeLessThan(20_001);
  });

  test("may take as long as it likes at the lowest rate", () => {
    const pace = new BodyPace(0);
    for (let nowMs = 0; nowMs < 1_000_000; nowMs += 5_000) {
      expect(pace.dueMs).toBeGreaterThan(nowMs);
      pace.came(5 * 32 * 1024, nowMs);
    }
  });
});

test("waits for bodies end once they take too long, unless they are forgotten", async () => {
  const clock = new FakeClock();
  const deadlines = new BodyDeadlines(clock);
  const late: string[] = [];
  const { promise: allLate, resolve } = Promise.withResolvers<void>();
  const watch = (name: string, dueMs: number) => {
    const wait = {
      place: -1,
      dueMs,
      onLate: () => {
        if (late.push(name) === 2) resolve();
      },
    };
    deadlines.watch(wait);
    return wait;
  };
  watch("first", 1_000);
  deadlines.forget(watch("came", 1_000));
  watch("second", 1_500);
  const pending = watch("pending", 5_000);
  clock.advance(1_600);
  await allLate;
  expect(late.toSorted()).toEqual(["first", "second"]);
  deadlines.forget(pending);
});

import { describe, expect, test } from "bun:test";
import { nextHealth, statesOf, unknownHealth, type HealthSignal } from "./provider-health.ts";

const startMs = Date.UTC(2026, 10, 21);
const signals = [
  "served",
  "outage",
  "rationed",
  "smoke-passed",
  "smoke-failed",
  "budget-spent",
  "budget-free",
] as const satisfies HealthSignal[];
const isSignal = (text: string): text is HealthSignal =>
  (signals as readonly string[]).includes(text);

/**
 * Plays a table: seconds since the start, what happened (how often, in the same second), the states
 * afterwards.
 */
function play(table: string): { expected: string; got: string }[] {
  let health = unknownHealth;
  return table
    .trim()
    .split("\n")
    .map((row) => {
      const [second = "", what = "", times = "", ...states] = row.trim().split(/\s+/);
      const nowMs = startMs + Number(second) * 1_000;
      for (let count = 0; isSignal(what) && count < Number(times); count += 1)
        health = nextHealth(health, what, nowMs);
      const got = statesOf(health, nowMs).join(" ") || "healthy";
      return {
        expected: row.trim(),
        got: `${row.trim().slice(0, row.trim().length - states.join(" ").length)}${got}`,
      };
    });
}

const tables: Record<string, string> = {
  "ignores one or two failures": `
    0    served    5   healthy
    1    outage    2   healthy
    2    served    5   healthy`,
  "deprioritizes after 3 failures in 10, until fewer than 1 in 10 recent attempts fail": `
    0    served    7   healthy
    1    outage    3   deprioritized
    2    served   10   deprioritized
    3    served   20   healthy`,
  "restores a provider without traffic when its failures expire": `
    0    outage    4   deprioritized
    20   nothing   0   deprioritized
    61   nothing   0   healthy`,
  "deprioritizes for rate limits and never quarantines for them": `
    0    rationed  9   deprioritized
    11   rationed  9   deprioritized
    30   rationed  9   deprioritized`,
  "deprioritizes after five failures in a row": `
    0     outage    1   healthy
    100   outage    1   healthy
    200   outage    1   healthy
    300   outage    1   healthy
    400   outage    1   deprioritized
    500   nothing   0   deprioritized
    701   nothing   0   healthy`,
  "does not count failures five minutes apart as a row": `
    0     outage    4   deprioritized
    301   outage    1   healthy`,
  "quarantines for 30 s after ten failures over 10 s, not after ten at once": `
    0    outage   12   deprioritized
    9    outage    1   deprioritized
    10   outage    1   quarantined
    39   nothing   0   quarantined
    40   nothing   0   deprioritized`,
  "doubles the quarantine after a failure on probation, up to five minutes": `
    0     outage   10   deprioritized
    10    outage    1   quarantined
    40    outage    1   quarantined
    99    nothing   0   quarantined
    100   outage    1   quarantined
    219   nothing   0   quarantined
    220   outage    1   quarantined
    459   nothing   0   quarantined
    460   outage    1   quarantined
    759   nothing   0   quarantined
    760   outage    1   quarantined
    1059  nothing   0   quarantined
    1060  nothing   0   deprioritized`,
  "does not extend a quarantine by failures of requests in progress": `
    0    outage   10   deprioritized
    10   outage    1   quarantined
    12   outage   50   quarantined
    40   nothing   0   deprioritized`,
  "ends probation after three successes": `
    0    outage   10   deprioritized
    10   outage    1   quarantined
    100  served    3   healthy
    101  outage    2   healthy`,
  "ends a quarantine after a success within it": `
    0    outage   10   deprioritized
    10   outage    1   quarantined
    11   served    1   deprioritized`,
  "ends probation without traffic, but quarantines again after one failure within ten minutes": `
    0    outage   10   deprioritized
    10   outage    1   quarantined
    99   nothing   0   deprioritized
    115  nothing   0   healthy
    312  outage    1   quarantined
    371  nothing   0   quarantined
    372  nothing   0   deprioritized
    432  nothing   0   healthy`,
  "requires a new row of failures long after a quarantine": `
    0     outage   10   deprioritized
    10    outage    1   quarantined
    700   outage    1   healthy`,
  "excludes after a failed smoke test until one passes": `
    0      smoke-failed  1   excluded
    86400  nothing       0   excluded
    86401  smoke-passed  1   healthy`,
  "does not exclude a provider by a smoke test if it served within 15 minutes": `
    0      served        1   healthy
    900    smoke-failed  1   healthy
    901    smoke-failed  1   excluded
    902    served        1   healthy`,
  "reports an exhausted budget beside other states": `
    0    budget-spent  1   budget_exhausted
    0    smoke-failed  1   budget_exhausted excluded
    0    outage       10   budget_exhausted excluded deprioritized
    10   outage        1   budget_exhausted excluded quarantined
    11   budget-free   1   excluded quarantined`,
};

describe("provider health", () => {
  test.each(Object.entries(tables))("%s", (_, table) => {
    const rows = play(table);
    expect(rows.map(({ got }) => got)).toEqual(rows.map(({ expected }) => expected));
  });
});

test("does not quarantine when every second attempt fails, and keeps a bounded number of attempts", () => {
  let health = unknownHealth;
  for (let index = 0; index < 20_000; index += 1) {
    const nowMs = startMs + index * 10;
    health = nextHealth(health, index % 2 === 0 ? "outage" : "served", nowMs);
    expect(statesOf(health, nowMs)).not.toContain("quarantined");
  }
  expect(statesOf(health, startMs + 200_000)).toEqual(["deprioritized"]);
  expect(health.attempts).toBeLessThanOrEqual(50);
});

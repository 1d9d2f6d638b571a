import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hourMs, minuteMs } from "../../../src/platform/kernel/clock.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { acme } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

/** 11 tokens in at 500 nano-USD and 7 out at 1500. */
const costUsd = 0.000016;
/** Enough for three requests, each of which is held at 0.000023. */
const threeUsd = 0.00006;

describe.each(engines)("budgets in a time zone on %s", (_, freshUrl) => {
  /** In Berlin the clocks go forward in the night that begins half an hour later. */
  const clock = new FakeClock(Date.parse("2025-03-29T22:30:00Z"));
  let upstream: FaultUpstream;
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    workspaces = await startTwoWorkspaces(
      freshUrl,
      { providers: [acme(upstream.baseUrl)] },
      { clock },
    );
  }, 240_000);
  afterAll(async () => {
    await workspaces.stop();
    upstream.stop();
  });

  const own = async (method: string, path: string, body?: unknown): Promise<unknown> =>
    (await workspaces.own(method, path, body)).json();
  const budgetWith = async (fields: object): Promise<unknown> =>
    at(
      await own("POST", "/budgets", {
        name: "day",
        period: "daily",
        action: "block",
        limit: threeUsd,
        time_zone: "Europe/Berlin",
        ...fields,
      }),
      "data",
    );
  const shown = (budget: unknown): Promise<unknown> =>
    own("GET", `/budgets/${textAt(budget, "id")}`);
  const newKey = async (): Promise<{ key: string; id: string }> => {
    const made = await own("POST", "/keys", { name: "k" });
    return { key: textAt(made, "key"), id: textAt(made, "data.id") };
  };
  const chat = async (key: string, fields: object = {}): Promise<number> => {
    const answer = await fetch(`${workspaces.gateway().baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(chatRequest({ max_tokens: 7, ...fields })),
    });
    await answer.text();
    return answer.status;
  };
  /** Asks twelve times at once, then one by one until nothing is left; returns how many were served. */
  const usedUp = async (key: string, fields: object = {}): Promise<number> => {
    const all = await Promise.all(Array.from({ length: 12 }, () => chat(key, fields)));
    for (let sent = 0; sent < 3; sent += 1) all.push(await chat(key, fields));
    return all.filter((status) => status === 200).length;
  };

  test("a day begins at midnight of the zone, however long it is", async () => {
    const { key, id } = await newKey();
    expect(await chat(key)).toBe(200);
    // What the key spent since midnight counts, and what others spent does not.
    expect(await chat((await newKey()).key)).toBe(200);
    const budget = await budgetWith({ scope: "key", subject: id });
    expect(budget).toMatchObject({
      time_zone: "Europe/Berlin",
      spent: costUsd,
      period_start: "2025-03-28T23:00:00.000Z",
      period_end: "2025-03-29T23:00:00.000Z",
    });
    const everybody = await budgetWith({ action: "alert", limit: 1 });
    expect(await usedUp(key)).toBe(2);
    const refused = await fetch(`${workspaces.gateway().baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify(chatRequest({ max_tokens: 7 })),
    });
    expect(at(await refused.json(), "error.metadata")).toMatchObject({
      reason: "budget_reached",
      budget_scope: "key",
      budget_subject: id,
      budget_time_zone: "Europe/Berlin",
    });
    await workspaces.restart();
    expect(await chat(key)).toBe(402);
    expect(at(await shown(budget), "spent")).toBe(3 * costUsd);
    expect(at(await shown(everybody), "spent")).toBe(4 * costUsd);
    clock.advance(30 * minuteMs - 1);
    expect(await chat(key)).toBe(402);
    clock.advance(1);
    expect(await usedUp(key)).toBe(3);
    expect(await shown(budget)).toMatchObject({
      spent: 3 * costUsd,
      period_start: "2025-03-29T23:00:00.000Z",
      period_end: "2025-03-30T22:00:00.000Z",
    });
    clock.advance(hourMs);
    // The day changes in UTC, and the budget's goes on.
    expect(await chat(key)).toBe(402);
    await workspaces.restart();
    expect(await chat(key)).toBe(402);
    clock.advance(22 * hourMs - 1);
    expect(await chat(key)).toBe(402);
    clock.advance(1);
    expect(await usedUp(key)).toBe(3);
  });

  test("bounds each customer by itself, and models alone where they are named", async () => {
    const { key } = await newKey();
    const each = await budgetWith({ scope: "customer", subject: "*", time_zone: "Asia/Kathmandu" });
    expect(await usedUp(key, { user: "anna@home" })).toBe(3);
    expect(await usedUp(key, { user: "ben~1" })).toBe(3);
    expect(await chat(key)).toBe(200);
    await workspaces.restart();
    for (const user of ["anna@home", "ben~1"]) expect(await chat(key, { user })).toBe(402);
    expect(await chat(key, { user: "carla" })).toBe(200);
    expect(at(await shown(each), "spent")).toBe(3 * costUsd);
    clock.advance(24 * hourMs);
    expect(await usedUp(key, { user: "anna@home" })).toBe(3);
    await own("DELETE", `/budgets/${textAt(each, "id")}`);
    expect(await chat(key, { user: "anna@home" })).toBe(200);
    const model = await budgetWith({ scope: "model", subject: "acme/large", limit: 0.00001 });
    expect(await chat(key)).toBe(402);
    await own("DELETE", `/budgets/${textAt(model, "id")}`);
    expect(await chat(key)).toBe(200);
  });

  test("refuses unknown zones, and zones for all time", async () => {
    const wrong = async (fields: object): Promise<unknown> =>
      at(await own("POST", "/budgets", { name: "b", limit: 1, ...fields }), "error.param");
    expect(await wrong({ time_zone: "Mars/Olympus" })).toBe("time_zone");
    expect(await wrong({ time_zone: "Europe/Berlin", period: "total" })).toBe("time_zone");
    expect(await own("POST", "/budgets", { name: "b", limit: 1, time_zone: "UTC" })).toMatchObject({
      data: { time_zone: "UTC" },
    });
  });
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dayMs, minuteMs } from "../../../src/platform/kernel/clock.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { acme, testLlmKey } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, numberAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { allEngines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

/** 11 tokens in at 500 nano-USD and 7 out at 1500. */
const chargeUsd = 0.000016;

describe.each(allEngines)("the credit statement on %s", (_, freshUrl) => {
  const clock = new FakeClock(Date.UTC(2025, 2, 3, 12));
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

  const chat = async (): Promise<void> => {
    const asked = await workspaces.as(testLlmKey)("POST", "/chat/completions", {
      model: "acme/large",
      messages: [{ role: "user", content: "Hello" }],
    });
    expect(asked.status).toBe(200);
    await asked.text();
  };
  const grant = (
    amount: number,
    bucket: "monthly" | "topup",
    workspace = "ws_own",
  ): Promise<Response> =>
    workspaces.own("POST", "/admin/grants", {
      workspace_id: workspace,
      amount,
      bucket,
      description: "a gift",
    });
  const page = async (query = ""): Promise<unknown> =>
    (await workspaces.own("GET", `/credits/transactions${query}`)).json();

  test("lists grants and daily charges, adds up to the balance and pages without gaps", async () => {
    clock.advance(minuteMs);
    await grant(1, "monthly");
    await chat();
    await chat();
    clock.advance(dayMs);
    await grant(2, "topup");
    await grant(3, "topup", "ws_strange");
    await chat();
    const all = listAt(await page(), "data");
    expect(
      all.map((entry) => [
        at(entry, "kind"),
        at(entry, "bucket"),
        at(entry, "amount"),
        at(entry, "requests"),
      ]),
    ).toEqual([
      ["charges", null, -chargeUsd, 1],
      ["grant", "topup", 2, null],
      ["charges", null, -2 * chargeUsd, 2],
      ["grant", "monthly", 1, null],
      ["topup", "topup", 10, null],
    ]);
    expect(all[0]).toMatchObject({ object: "credit_transaction", at: "2025-03-04T23:59:59.999Z" });
    const { balance } = (await (await workspaces.own("GET", "/credits")).json()) as {
      balance: number;
    };
    expect(numberAt(all[0], "balance")).toBeCloseTo(balance, 6);
    const balances = all.map((entry) => numberAt(entry, "balance"));
    for (const [index, entry] of all.entries()) {
      expect(numberAt(entry, "amount")).toBeCloseTo(
        (balances[index] ?? 0) - (balances[index + 1] ?? 0),
        9,
      );
    }
    const pages: unknown[] = [];
    for (let query = "?limit=1"; query !== ""; ) {
      const seen = await page(query);
      pages.push(...listAt(seen, "data"));
      query = at(seen, "has_more") === true ? `?limit=1&cursor=${textAt(seen, "next_cursor")}` : "";
    }
    expect(pages).toEqual(all);
  });

  test("lists expired monthly credits, and the sum still equals the balance", async () => {
    clock.advance(40 * dayMs);
    await workspaces.restart();
    const all = listAt(await page(), "data");
    expect(all[0]).toMatchObject({ kind: "expiry", bucket: "monthly" });
    const sum = all.reduce<number>((total, entry) => total + numberAt(entry, "amount"), 0);
    const { balance } = (await (await workspaces.own("GET", "/credits")).json()) as {
      balance: number;
    };
    expect(sum).toBeCloseTo(balance, 6);
    expect(numberAt(all[0], "balance")).toBeCloseTo(balance, 6);
  });

  test("lists closed months and shows their requests unchanged", async () => {
    const asked = await workspaces.as(testLlmKey)("POST", "/chat/completions", {
      model: "acme/large",
      messages: [{ role: "user", content: "Hello" }],
    });
    const id = textAt(await asked.json(), "id");
    const shown = async (): Promise<unknown[]> => {
      const answers = await Promise.all([
        workspaces.own("GET", "/credits/transactions"),
        workspaces.own("GET", "/credits"),
        workspaces.as(testLlmKey)("GET", `/generation?id=${id}`),
      ]);
      return Promise.all(answers.map(async (answer) => [answer.status, await answer.json()]));
    };
    clock.advance(70 * dayMs);
    const before = await shown();
    expect(before.map((each) => at(each, "0"))).toEqual([200, 200, 200]);
    const { closedMonths, storage } = workspaces.gateway().app;
    await closedMonths.closeDue(clock.nowMs());
    expect(await storage.database.selectFrom("transfers").select("id").execute()).toEqual([]);
    expect(await shown()).toEqual(before);
    // The credits of the first start are not given again.
    await workspaces.restart();
    expect(await shown()).toEqual(before);
    clock.advance(-70 * dayMs);
  });

  test("shows each workspace only its own entries and rejects an invalid cursor or limit", async () => {
    const strange = listAt(
      await (await workspaces.stranger("GET", "/credits/transactions")).json(),
      "data",
    );
    expect(strange.map((entry) => at(entry, "amount"))).toEqual([3]);
    for (const query of [
      "cursor=none",
      "limit=0",
      "limit=1000",
      `cursor=${Buffer.from("1 x y").toString("base64url")}`,
    ]) {
      const refused = await errorOf(await workspaces.own("GET", `/credits/transactions?${query}`));
      expect([refused.status, refused.param]).toEqual([400, query.split("=")[0] ?? ""]);
    }
  });
});

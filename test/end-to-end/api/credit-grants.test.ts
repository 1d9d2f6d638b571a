import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { middayClock } from "../../support/midday-clock.ts";
import { at, listAt, numberAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

describe.each(engines)("granted credits on %s", (_, freshUrl) => {
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(
      freshUrl,
      { plans: { enterprise: { monthlyCreditsNanoUsd: 3_000_000_000n } } },
      { clock: middayClock() },
    );
  }, 240_000);
  afterAll(() => workspaces.stop());

  const grant = (body: unknown): Promise<Response> => workspaces.own("POST", "/admin/grants", body);
  const credits = async (ask = workspaces.stranger): Promise<unknown> =>
    (await ask("GET", "/credits")).json();

  test("a plan's credits are granted once at the start and survive a restart", async () => {
    expect(await credits(workspaces.own)).toMatchObject({
      balance: 13,
      monthly_balance: 3,
      topup_balance: 10,
    });
    expect(await credits()).toMatchObject({
      balance: 3,
      monthly_balance: 3,
      topup_balance: 0,
      used: 0,
    });
    await workspaces.restart();
    expect(await credits()).toMatchObject({ balance: 3 });
  });

  test("an operator can grant to any workspace and bucket, and an idempotency key grants only once", async () => {
    const body = {
      workspace_id: "ws_strange",
      amount: 1.5,
      description: "sorry",
      idempotency_key: "once",
    };
    const first: unknown = await (await grant(body)).json();
    expect(first).toEqual({
      id: expect.stringMatching(/^txn_grant_/),
      object: "credit_grant",
      workspace_id: "ws_strange",
      amount: 1.5,
      bucket: "monthly",
      kind: "admin",
      description: "sorry",
      granted_at: expect.any(String),
      granted_by: expect.stringMatching(/^mgk_/),
    });
    expect(await (await grant(body)).json()).toEqual(first);
    expect(await errorOf(await grant({ ...body, amount: 2 }))).toMatchObject({
      status: 409,
      param: "idempotency_key",
    });
    const least = { workspace_id: "ws_strange", amount: 0.000_000_001, bucket: "topup" };
    const second: unknown = await (await grant(least)).json();
    expect(await credits()).toMatchObject({ balance: 4.5, monthly_balance: 4.5, topup_balance: 0 });
    expect(workspaces.gateway().app.ledger.book.workspace("ws_strange").topupNano).toBe(1n);
    const listed = listAt(
      await (await workspaces.own("GET", "/admin/grants?workspace_id=ws_strange")).json(),
      "data",
    );
    expect(listed.map((each) => at(each, "kind")).sort()).toEqual(["admin", "admin", "plan"]);
    expect(listed).toContainEqual(second);
    const [entry] = listAt(
      await (await workspaces.own("GET", "/security/audit?limit=1")).json(),
      "data",
    );
    expect(entry).toMatchObject({
      action: "POST /admin/grants",
      target: `ws_strange ${textAt(second, "id")}`,
    });
  });

  test("the parts of a balance add up to it with the six decimals that are shown", async () => {
    const before = await credits(workspaces.own);
    for (const bucket of ["monthly", "topup"])
      await grant({ workspace_id: "ws_own", amount: 0.000_000_4, bucket });
    const micros = (shown: unknown, part: string): number =>
      Math.round(numberAt(shown, part) * 1e6);
    const listed = listAt(await (await workspaces.own("GET", "/admin/workspaces")).json(), "data");
    const record = listed.find((each) => at(each, "id") === "ws_own");
    for (const shown of [await credits(workspaces.own), record]) {
      expect(micros(shown, "balance")).toBe(micros(before, "balance") + 1);
      expect(micros(shown, "monthly_balance") + micros(shown, "topup_balance")).toBe(
        micros(shown, "balance"),
      );
    }
  });

  test("referral credits are monthly: spent before top-ups and reported as monthly", async () => {
    const before = await credits(workspaces.own);
    const referral = {
      workspace_id: "ws_own",
      amount: 2,
      kind: "referral",
      description: "brought somebody",
    };
    expect(await (await grant(referral)).json()).toMatchObject({
      kind: "referral",
      bucket: "monthly",
      amount: 2,
    });
    expect(await credits(workspaces.own)).toMatchObject({
      monthly_balance: numberAt(before, "monthly_balance") + 2,
      topup_balance: numberAt(before, "topup_balance"),
      balance: numberAt(before, "balance") + 2,
      used: 0,
    });
    expect(await errorOf(await grant({ ...referral, bucket: "topup" }))).toMatchObject({
      status: 400,
      param: "bucket",
    });
  });

  test("another workspace's key is refused, even with every scope", async () => {
    const before = await credits();
    const refusals = [
      await workspaces.stranger("POST", "/admin/grants", { workspace_id: "ws_strange", amount: 5 }),
      await workspaces.stranger("GET", "/admin/grants"),
    ];
    for (const refused of refusals)
      expect(await errorOf(refused)).toMatchObject({ status: 403, code: "forbidden" });
    expect(await credits()).toEqual(before);
  });

  test.each([
    [{ amount: 1 }, "workspace_id"],
    [{ workspace_id: "ws_strange" }, "amount"],
    [{ workspace_id: "ws_strange", amount: 0 }, "amount"],
    [{ workspace_id: "ws_strange", amount: -1 }, "amount"],
    [{ workspace_id: "ws_strange", amount: 1e-12 }, "amount"],
    [{ workspace_id: "ws_strange", amount: 1e9 }, "amount"],
    [{ workspace_id: "ws_strange", amount: 1, bucket: "mine" }, "bucket"],
    [{ workspace_id: "ws_strange", amount: 1, kind: "plan" }, "kind"],
  ])("%j returns 400", async (body, param) => {
    expect(await errorOf(await grant(body))).toMatchObject({ status: 400, param });
  });

  test("a grant to an unknown workspace returns 404", async () => {
    expect(await errorOf(await grant({ workspace_id: "ws_none", amount: 1 }))).toMatchObject({
      status: 404,
      param: "workspace_id",
    });
  });
});

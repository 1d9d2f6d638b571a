import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, testLlmKey } from "../../support/gateway.ts";
import { middayClock } from "../../support/midday-clock.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { at, listAt, numberAt, textAt } from "./at.ts";
import { bootstrapWith } from "./bootstrap-with.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";
import { allEngines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

const models = [
  { id: "acme/large", pricing: { prompt: "0.50", completion: "1.50" } },
  { id: "acme/tiny:free" },
];

/** Less than what a request of the test costs, so that it is paid from both buckets. */
const monthlyNano = 2_000n;

describe.each(allEngines)("spend and charges on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    workspaces = await startTwoWorkspaces(
      freshUrl,
      {
        bootstrap: bootstrapWith({ creditsNanoUsd: 1_000_000_000n }),
        plans: { enterprise: { monthlyCreditsNanoUsd: monthlyNano } },
        providers: [
          acme(upstream.baseUrl, { models }),
          acme(upstream.baseUrl, { id: "backup", name: "Backup", models: models.slice(0, 1) }),
        ],
      },
      { clock: middayClock() },
    );
  }, 240_000);
  afterAll(async () => {
    await workspaces.stop();
    upstream.stop();
  });

  const serve = async (
    secret = testLlmKey,
    fields: Record<string, unknown> = {},
  ): Promise<{ id: string; cost: number }> => {
    const request = chatRequest({ provider: { order: ["acme"] }, ...fields });
    const response = await workspaces.as(secret)("POST", "/chat/completions", request);
    const cost = numberAt(await response.json(), "usage.cost");
    return { id: response.headers.get("x-service-trace-id") ?? "", cost };
  };
  const explain = async (id: string, ask = workspaces.as(testLlmKey)): Promise<unknown> =>
    (await ask("GET", `/generation/${id}/explain`)).json();
  const words = (explanation: unknown): string => listAt(explanation, "explanation").join("\n");
  const sum = (amounts: readonly unknown[]): number =>
    Math.round(amounts.reduce<number>((total, amount) => total + Number(amount) * 1e9, 0));

  test("explains a charge with lines, buckets and transfers that each add up to it, also after a failover", async () => {
    upstream.enqueue(json(500, chatError("upstream is unwell")));
    const { id, cost } = await serve();
    const explanation = await explain(id);
    const own = `gen_${id}`;
    expect(explanation).toMatchObject({
      id: own,
      object: "charge_explanation",
      charged_usd: cost,
      generation: { id: own },
    });
    const nano = Math.round(cost * 1e9);
    expect(nano).toBeGreaterThan(Number(monthlyNano));
    expect(sum(listAt(explanation, "lines").map((line) => at(line, "amount_usd")))).toBe(nano);
    expect(
      sum(listAt(explanation, "transfers").map((transfer) => at(transfer, "amount_usd"))),
    ).toBe(nano);
    expect(at(explanation, "sources")).toEqual({
      monthly_usd: Number(monthlyNano) / 1e9,
      topup_usd: (nano - Number(monthlyNano)) / 1e9,
      uncollected_usd: 0,
    });
    expect(words(explanation)).toContain(
      "acme/large was asked for, and acme/large at backup served it.",
    );
    expect(words(explanation)).toContain("acme/large at acme failed");
    expect(words(explanation)).toContain("from monthly credits and");
    expect(await explain(id, workspaces.own)).toEqual(explanation);
  });

  test("explains a free request as free, and returns 404 to other workspaces", async () => {
    const { id } = await serve(testLlmKey, { model: "acme/tiny:free", provider: undefined });
    const explanation = await explain(id);
    const sources = { monthly_usd: 0, topup_usd: 0, uncollected_usd: 0 };
    expect(explanation).toMatchObject({ charged_usd: 0, lines: [], transfers: [], sources });
    expect(words(explanation)).toContain("Nothing was charged");
    expect(
      await errorOf(await workspaces.stranger("GET", `/generation/${id}/explain`)),
    ).toMatchObject({ status: 404 });
  });

  test("reports add up to the spend by model, provider, key and user, deleted keys included", async () => {
    const created: unknown = await (
      await workspaces.own("POST", "/keys", { name: '=HYPERLINK("x"), "quoted"' })
    ).json();
    await serve(textAt(created, "key"));
    await workspaces.own("DELETE", `/keys/${textAt(created, "data.hash")}`);
    const used = numberAt(await (await workspaces.own("GET", "/credits")).json(), "used");
    for (const group of ["model", "provider", "key", "user"]) {
      const report: unknown = await (
        await workspaces.own("GET", `/analytics/spend?group_by=${group}`)
      ).json();
      expect(report).toMatchObject({ object: "spend_report", group_by: group });
      expect(numberAt(report, "total_cost")).toBeCloseTo(used, 6);
      const costs = listAt(report, "data").map((line) => numberAt(line, "cost"));
      expect(costs).toEqual([...costs].sort((one, other) => other - one));
      expect(sum(costs)).toBe(Math.round(numberAt(report, "total_cost") * 1e9));
    }
    const keys = listAt(
      await (await workspaces.own("GET", "/analytics/spend?group_by=key")).json(),
      "data",
    );
    expect(keys.find((line) => at(line, "id") === textAt(created, "data.id"))).toMatchObject({
      requests: 1,
      errors: 0,
    });
    const csv = await workspaces.own("GET", "/analytics/spend?group_by=key&format=csv");
    expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    const [head, ...rows] = (await csv.text()).trimEnd().split("\r\n");
    expect(head).toBe("id,name,requests,errors,prompt_tokens,completion_tokens,cost");
    expect(rows).toHaveLength(keys.length);
    expect(rows.join("\n")).toContain('"\'=HYPERLINK(""x""), ""quoted"""');
  });

  test("another workspace's report is empty, and a range that is too long returns 400", async () => {
    expect(await (await workspaces.stranger("GET", "/analytics/spend")).json()).toMatchObject({
      total_cost: 0,
      data: [],
    });
    const query = "from=2025-01-01&to=2026-11-21";
    expect(await errorOf(await workspaces.own("GET", `/analytics/spend?${query}`))).toMatchObject({
      status: 400,
      param: "from",
    });
    expect(
      await errorOf(await workspaces.own("GET", "/analytics/spend?group_by=mood")),
    ).toMatchObject({ status: 400, param: "group_by" });
  });
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

/** 11 tokens in at 500 nano-USD and 7 out at 1500. */
const chargeUsd = 0.000016;
/** Enough for three requests; each may cost some 0.000023 at most. */
const threeUsd = 0.00006;

describe.each(engines)("budgets of customers and tags on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let workspaces: TwoWorkspaces;
  let secret: string;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    workspaces = await startTwoWorkspaces(freshUrl, { providers: [acme(upstream.baseUrl)] });
    const made = await workspaces.own("POST", "/keys", { name: "service" });
    secret = textAt(await made.json(), "key");
  }, 240_000);
  afterAll(async () => {
    await workspaces.stop();
    upstream.stop();
  });

  const budget = async (fields: Record<string, unknown>): Promise<string> => {
    const made = await workspaces.own("POST", "/budgets", {
      name: "plan",
      action: "block",
      limit: threeUsd,
      ...fields,
    });
    return textAt(await made.json(), "data.id");
  };
  const chat = (fields: Record<string, unknown>, headers: Record<string, string> = {}) =>
    fetch(`${workspaces.gateway().baseUrl}/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${secret}`,
        "content-type": "application/json",
        ...headers,
      },
      body: JSON.stringify(chatRequest({ max_tokens: 7, ...fields })),
    });
  const statuses = async (
    times: number,
    fields: Record<string, unknown>,
    headers?: Record<string, string>,
  ): Promise<number[]> => {
    const answers = await Promise.all(Array.from({ length: times }, () => chat(fields, headers)));
    await Promise.all(answers.map((answer) => answer.text()));
    return answers.map(({ status }) => status).sort();
  };
  const served = (list: readonly number[]): number => list.filter((each) => each === 200).length;

  test("each customer has the limit by itself, however many ask at once", async () => {
    const id = await budget({ scope: "customer", subject: "*" });
    const [one, other] = await Promise.all([
      statuses(20, { user: "anna" }),
      statuses(20, { safety_identifier: "ben" }),
    ]);
    expect(served(one) * chargeUsd).toBeLessThanOrEqual(threeUsd);
    expect(served(one)).toBeGreaterThan(0);
    expect(served(other)).toBeGreaterThan(0);
    for (let left = 3; left > 0; left -= 1) await chat({ user: "anna" });
    const refused = await chat({ user: "anna" });
    expect(refused.status).toBe(402);
    expect(at(await refused.json(), "error.metadata")).toMatchObject({
      reason: "budget_reached",
      budget_id: id,
      budget_scope: "customer",
      budget_subject: "anna",
    });
    // The header takes precedence over the fields of the body.
    expect((await chat({ user: "anna" }, { "x-service-customer": "carla" })).status).toBe(200);
    expect((await chat({})).status).toBe(200);
    await workspaces.restart();
    expect((await chat({ user: "anna" })).status).toBe(402);
    expect((await chat({ user: "dora" })).status).toBe(200);
    const shown: unknown = await (await workspaces.own("GET", `/budgets/${id}`)).json();
    expect(at(shown, "spent")).toBe(3 * chargeUsd);
    await workspaces.own("DELETE", `/budgets/${id}`);
  });

  test("a tag of the metadata has a limit by value, or for one value", async () => {
    await budget({ scope: "tag:team", subject: "red", limit: chargeUsd / 2 });
    expect((await chat({ metadata: { team: "blue" } })).status).toBe(200);
    expect((await chat({ metadata: { team: "red" } })).status).toBe(402);
    expect((await chat({ metadata: { other: "red" } })).status).toBe(200);
    for (const team of [`${"x".repeat(199)}\u{1f600}`, "\ud800"])
      expect((await chat({ metadata: { team } })).status).toBe(200);
  });

  test("refuses a star for what is not said by requests", async () => {
    const wrong = await workspaces.own("POST", "/budgets", {
      name: "plan",
      scope: "key",
      subject: "*",
      limit: 1,
    });
    expect(wrong.status).toBe(400);
  });
});

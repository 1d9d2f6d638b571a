import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme } from "../../support/gateway.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";
import { allEngines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

describe.each(allEngines)("usage by what requests say of themselves, on %s", (_, freshUrl) => {
  let stage: TwoWorkspaces;
  let upstream: FaultUpstream;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    const providers = [acme(upstream.baseUrl)];
    stage = await startTwoWorkspaces(freshUrl, { sandbox: true, providers });
    const ask = async (body: object, headers: Record<string, string> = {}): Promise<void> => {
      const answer = await stage
        .gateway()
        .post(
          "/chat/completions",
          { ...chatRequest({ model: "sandbox/chat:free" }), ...body },
          { headers },
        );
      expect(answer.status).toBe(200);
      await answer.text();
    };
    const desk = { "x-title": "Desk" };
    await ask({ user: "ada", metadata: { team: "blue", "cost.centre": "12" } }, desk);
    await ask({ user: "ada", metadata: { team: "red" }, session_id: "s-1" }, desk);
    await ask({ user: "ada" }, { "x-service-customer": "grace" });
  }, 240_000);
  afterAll(async () => {
    await stage.stop();
    upstream.stop();
  });

  const linesBy = async (group: string): Promise<readonly [unknown, unknown][]> => {
    const answer = await stage.own("GET", `/analytics/usage?group_by=${group}`);
    const body: unknown = await answer.json();
    expect(answer.status).toBe(200);
    expect(at(body, "counted_from")).toBe(null);
    const name = group.startsWith("tag:")
      ? "tag"
      : group.replace(/^(preset|session)$/, "$1_id").replace(/.*,/, "");
    return listAt(body, "data").map((line) => [at(line, name), at(line, "requests")]);
  };

  test("sums by app, customer, session, preset and tag, with null where none is named", async () => {
    expect(await linesBy("app")).toEqual([
      [null, 1],
      ["Desk", 2],
    ]);
    expect(await linesBy("customer")).toEqual([
      ["ada", 2],
      ["grace", 1],
    ]);
    expect(await linesBy("session")).toEqual([
      [null, 2],
      ["s-1", 1],
    ]);
    expect(await linesBy("preset")).toEqual([[null, 3]]);
    expect(await linesBy("tag:team")).toEqual([
      [null, 1],
      ["blue", 1],
      ["red", 1],
    ]);
    expect(await linesBy("tag:cost.centre")).toEqual([
      [null, 2],
      ["12", 1],
    ]);
    expect(await linesBy("model,customer")).toHaveLength(2);
  });

  test("gives the same sums as the counters, in any time zone", async () => {
    const read = async (query: string): Promise<number> => {
      const answer = await stage.own("GET", `/analytics/usage?${query}`);
      const lines = listAt(await answer.json(), "data");
      return lines.reduce<number>((sum, line) => sum + Number(at(line, "tokens")), 0);
    };
    const counted = await read("group_by=model");
    expect(await read("group_by=customer,model")).toBe(counted);
    expect(await read("group_by=customer&time_zone=Asia/Tokyo")).toBe(counted);
    expect(await read("group_by=app&interval=hour")).toBe(counted);
  });

  test("sums each part of the usage with its charge, as the explanations of the requests have it", async () => {
    const { gateway } = stage;
    for (const body of [chatRequest(), chatRequest({ stream: true })])
      await (await gateway().post("/chat/completions", body)).text();
    const picture = { model: "sandbox/image:free", prompt: "A mill", n: 2 };
    expect((await gateway().post("/images/generations", picture)).status).toBe(200);
    const { data: shown } = (await (await stage.own("GET", "/analytics/usage/parts")).json()) as {
      data: { part: string; quantity: number; requests: number; cost: number }[];
    };
    const records = listAt(await (await stage.own("GET", "/analytics/generations")).json(), "data");
    const lines = new Map<string, number>();
    for (const record of records) {
      const path = `/generation/${String(at(record, "id"))}/explain`;
      for (const line of listAt(await (await stage.own("GET", path)).json(), "lines")) {
        const part = String(at(line, "part"));
        lines.set(part, (lines.get(part) ?? 0) + Number(at(line, "amount_usd")));
      }
    }
    expect(lines.size).toBeGreaterThan(1);
    const charged = shown.filter(({ cost }) => cost > 0);
    expect(charged.map(({ part }) => part).sort()).toEqual(
      [...lines].flatMap(([part, cost]) => (cost > 0 ? [part] : [])).sort(),
    );
    for (const { part, cost } of charged) expect(cost).toBeCloseTo(lines.get(part) ?? 0, 8);
    expect(shown.find(({ part }) => part === "outputImages")).toEqual({
      part: "outputImages",
      quantity: 2,
      requests: 1,
      cost: 0,
    });
    const divided = listAt(
      await (await stage.own("GET", "/analytics/usage/parts?group_by=model")).json(),
      "data",
    );
    const sumOf = (part: string, name: "quantity" | "requests" | "cost"): number =>
      divided
        .filter((line) => at(line, "part") === part)
        .reduce<number>((sum, line) => sum + Number(at(line, name)), 0);
    for (const { part, quantity, requests, cost } of shown) {
      const sums = [sumOf(part, "quantity"), sumOf(part, "requests")];
      expect([part, ...sums]).toEqual([part, quantity, requests]);
      expect(sumOf(part, "cost")).toBeCloseTo(cost, 8);
    }
    const models = new Set(divided.map((line) => at(line, "model")));
    expect(models).toEqual(new Set(records.map((record) => at(record, "model"))));
    const byProvider = await stage.own("GET", "/analytics/usage/parts?group_by=provider");
    expect(listAt(await byProvider.json(), "data").map((line) => at(line, "provider"))).toContain(
      "acme",
    );
    const unknown = await stage.own("GET", "/analytics/usage/parts?group_by=colour");
    expect((await errorOf(unknown)).message).toContain("must be one of model, provider, key");
    const foreign = await stage.stranger("GET", "/analytics/usage/parts");
    expect(listAt(await foreign.json(), "data")).toEqual([]);
    const refused = await stage.own("GET", "/analytics/usage/parts?from=2024-01-01&to=2026-01-01");
    expect((await errorOf(refused)).message).toStartWith("from: must be at most 366 days");
  });

  test("shows a workspace nothing of another, and refuses groups that it does not know", async () => {
    const foreign = await stage.stranger("GET", "/analytics/usage?group_by=customer");
    expect(listAt(await foreign.json(), "data")).toEqual([]);
    for (const group of ["colour", "tag:", "tag:a b", "tag:a,tag:b"]) {
      const refused = await stage.own(
        "GET",
        `/analytics/usage?group_by=${encodeURIComponent(group)}`,
      );
      expect(refused.status).toBe(400);
      expect((await errorOf(refused)).message).toStartWith("group_by: must be among model, key");
    }
  });
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { getRun } from "../../../src/endpoints/runs/runs.ts";
import { acme } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

/** 11 tokens in at 500 nano-USD and 7 out at 1500. */
const chargeUsd = 0.000016;

interface Opened {
  id: string;
  secret: string;
}

describe.each(engines)("runs on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    workspaces = await startTwoWorkspaces(freshUrl, { providers: [acme(upstream.baseUrl)] });
  }, 240_000);
  afterAll(async () => {
    await workspaces.stop();
    upstream.stop();
  });

  const makeKey = async (fields: Record<string, unknown> = {}): Promise<string> => {
    const answer = await workspaces.own("POST", "/keys", { name: "agents", ...fields });
    return textAt(await answer.json(), "key");
  };
  const ask = (secret: string, fields: Record<string, unknown>): Promise<Response> =>
    workspaces.as(secret)("POST", "/runs", { name: "nightly", ...fields });
  const open = async (secret: string, fields: Record<string, unknown>): Promise<Opened> => {
    const response = await ask(secret, fields);
    const answer: unknown = await response.json();
    expect([response.status, answer]).toEqual([200, expect.anything()]);
    return { id: textAt(answer, "data.id"), secret: textAt(answer, "key") };
  };
  const chat = (
    secret: string,
    headers: Record<string, string> = {},
    fields: Record<string, unknown> = {},
  ): Promise<Response> =>
    fetch(`${workspaces.gateway().baseUrl}/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${secret}`,
        "content-type": "application/json",
        ...headers,
      },
      body: JSON.stringify(chatRequest({ max_tokens: 7, ...fields })),
    });
  const show = async (secret: string, id: string): Promise<unknown> => {
    const answer: unknown = await (await workspaces.as(secret)("GET", `/runs/${id}`)).json();
    // The described fields are all that there are, also of the runs in it.
    expect(getRun.response?.().parse(answer)).toEqual(answer);
    return at(answer, "data");
  };

  test("opens with a key of its own, which tells what is left", async () => {
    const key = await makeKey({ limit: 5 });
    const response = await ask(key, { limit: 1, max_requests: 3, expires_in: 600 });
    const answer: unknown = await response.json();
    expect(response.status).toBe(200);
    expect(at(answer, "data")).toMatchObject({
      object: "run",
      name: "nightly",
      limit: 1,
      spent: 0,
      remaining: 1,
      max_requests: 3,
      requests: 0,
      status: "active",
      parent_id: null,
    });
    const secret = textAt(answer, "key");
    expect(secret).toMatch(/^sk-svc-v1-/);
    const served = await chat(secret);
    expect(served.status).toBe(200);
    expect(served.headers.get("x-service-run-remaining")).toBe("0.999984");
    expect(served.headers.get("x-service-run-requests-remaining")).toBe("2");
    await chat(secret);
    await chat(secret);
    const refused = await chat(secret);
    expect(refused.status).toBe(402);
    const body: unknown = await refused.json();
    expect(textAt(body, "error.code")).toBe("run_exhausted");
    expect(textAt(body, "error.metadata.resume_url")).toContain(textAt(answer, "data.id"));
    expect(refused.headers.get("x-service-run-remaining")).toBe("0.999952");
    expect(await show(key, textAt(answer, "data.id"))).toMatchObject({
      spent: 3 * chargeUsd,
      requests: 3,
      status: "exhausted",
    });
  });

  test("carves its limit out of its key, however many open at once", async () => {
    const key = await makeKey({ limit: 1 });
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(key, { limit: 0.3 })));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, 200, 200, 402, 402, 402, 402, 402, 402, 402]);
    const refused = answers.find(({ status }) => status === 402);
    expect(at(await refused?.json(), "error")).toMatchObject({
      code: "insufficient_balance",
      metadata: { reason: "key_limit_reached" },
    });
    const [first] = await Promise.all(
      answers.filter(({ status }) => status === 200).map((each) => each.json()),
    );
    await chat(textAt(first, "key"));
    const ended = await workspaces.as(key)("PATCH", `/runs/${textAt(first, "data.id")}`, {
      status: "ended",
    });
    expect(at(await ended.json(), "data")).toMatchObject({ status: "ended", spent: chargeUsd });
    const again = await workspaces.as(key)("PATCH", `/runs/${textAt(first, "data.id")}`, {
      status: "active",
    });
    expect(again.status).toBe(409);
    expect((await ask(key, { limit: 0.4 })).status).toBe(402);
    expect((await ask(key, { limit: 0.39 })).status).toBe(200);
    const refusedNow = await chat(textAt(first, "key"));
    expect([refusedNow.status, textAt(await refusedNow.json(), "error.code")]).toEqual([
      402,
      "run_exhausted",
    ]);
  });

  test("leaves its key no more than the rest", async () => {
    const key = await makeKey({ limit: 0.0001 });
    await open(key, { limit: 0.0001 });
    const refused = await chat(key);
    expect([refused.status, at(await refused.json(), "error.metadata.reason")]).toEqual([
      402,
      "key_limit_reached",
    ]);
  });

  test("nests, with sums by tree", async () => {
    const key = await makeKey({ limit: 1 });
    const outer = await open(key, { limit: 0.5, max_depth: 1 });
    const inner = await open(outer.secret, { name: "inner", limit: 0.3 });
    expect((await ask(outer.secret, { limit: 0.3 })).status).toBe(402);
    expect((await ask(inner.secret, { limit: 0.1 })).status).toBe(403);
    await chat(outer.secret);
    await chat(inner.secret);
    await chat(inner.secret);
    const tree = await show(key, outer.id);
    expect(tree).toMatchObject({
      spent: 3 * chargeUsd,
      remaining: 0.199984,
      total: { spent: 3 * chargeUsd, requests: 3 },
    });
    expect(listAt(tree, "runs")).toMatchObject([
      { id: inner.id, parent_id: outer.id, spent: 2 * chargeUsd, runs: [] },
    ]);
    expect(listAt(tree, "generations").map((each) => at(each, "run_id"))).toEqual([
      outer.id,
      inner.id,
      inner.id,
    ]);
    await workspaces.as(key)("PATCH", `/runs/${outer.id}`, { status: "ended" });
    expect(await show(key, inner.id)).toMatchObject({ status: "ended", spent: 2 * chargeUsd });
    expect((await ask(key, { limit: 1 - 3 * chargeUsd })).status).toBe(200);
  });

  test("counts what is nested in it, at any depth, towards a budget on it", async () => {
    const outer = await open(await makeKey(), { limit: 1 });
    const inner = await open(outer.secret, { limit: 0.5 });
    const innermost = await open(inner.secret, { limit: 0.1 });
    const fields = { name: "outer", scope: "key", subject: outer.id, period: "total" };
    const budget: unknown = await (
      await workspaces.own("POST", "/budgets", { ...fields, action: "block", limit: 0.00003 })
    ).json();
    expect((await chat(innermost.secret)).status).toBe(200);
    const path = `/budgets/${textAt(budget, "data.id")}`;
    const shown: unknown = await (await workspaces.own("GET", path)).json();
    expect(at(shown, "spent")).toBe(chargeUsd);
    const refused = await chat(innermost.secret);
    expect([refused.status, at(await refused.json(), "error.metadata.reason")]).toEqual([
      402,
      "budget_reached",
    ]);
    await workspaces.own("DELETE", path);
  });

  test("lasts whole milliseconds, whichever part of a second is named", async () => {
    await open(await makeKey(), { limit: 0.1, expires_in: 600.0005 });
  });

  test("stops at its limit, and goes on once more was added", async () => {
    const key = await makeKey({ limit: 1 });
    const run = await open(key, { limit: 0.00003 });
    expect((await chat(run.secret)).status).toBe(200);
    const refused = await chat(run.secret);
    expect(refused.status).toBe(402);
    expect(at(await refused.json(), "error")).toMatchObject({
      code: "run_exhausted",
      metadata: { reason: "run_limit_reached", run_id: run.id, resume_url: expect.any(String) },
    });
    for (const status of [undefined, "ended"]) {
      const raised = { limit: 0.5, status };
      const own = await workspaces.as(run.secret)("PATCH", `/runs/${run.id}`, raised);
      expect(own.status).toBe(403);
    }
    const added = await workspaces.own("PATCH", `/runs/${run.id}`, { limit: 0.5 });
    expect(at(await added.json(), "data")).toMatchObject({ limit: 0.5, status: "active" });
    expect((await chat(run.secret)).status).toBe(200);
    expect((await workspaces.own("PATCH", `/runs/${run.id}`, { limit: 0.00001 })).status).toBe(409);
    expect((await workspaces.own("PATCH", `/runs/${run.id}`, { limit: 1.5 })).status).toBe(402);
    await workspaces.own("PATCH", `/runs/${run.id}`, { status: "paused" });
    expect((await chat(run.secret)).status).toBe(402);
    await workspaces.own("PATCH", `/runs/${run.id}`, { status: "active" });
    expect((await chat(run.secret)).status).toBe(200);
  });

  test("opens and is joined on the fly within the key's run_limit", async () => {
    const key = await makeKey({ limit: 1, run_limit: 0.1 });
    const named = { "x-service-run": "tests; limit=0.05; max_requests=8" };
    const answers = await Promise.all(Array.from({ length: 8 }, () => chat(key, named)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
    const joined = await chat(key, { "x-service-run": "tests" });
    expect(joined.status).toBe(402);
    expect(joined.headers.get("x-service-run-requests-remaining")).toBe("0");
    const list: unknown = await (await workspaces.as(key)("GET", "/runs")).json();
    expect(listAt(list, "data")).toMatchObject([
      { name: "tests", limit: 0.05, requests: 8, spent: 8 * chargeUsd },
    ]);
    expect((await chat(key, { "x-service-run": "more; limit=0.2" })).status).toBe(400);
    for (const bound of ["max_requests=1e300", "expires_in=2592001"])
      expect((await chat(key, { "x-service-run": `odd; ${bound}` })).status).toBe(400);
    // Only people and management keys raise a run beyond it.
    const path = `/runs/${textAt(listAt(list, "data")[0], "id")}`;
    const raised = await workspaces.as(key)("PATCH", path, { limit: 0.2 });
    expect([raised.status, at(await raised.json(), "error.param")]).toEqual([400, "limit"]);
    expect((await workspaces.as(key)("PATCH", path, { limit: 0.1 })).status).toBe(200);
    expect((await workspaces.own("PATCH", path, { limit: 0.2 })).status).toBe(200);
    const opened = await chat(key, { "x-service-run": "more" });
    expect([opened.status, opened.headers.get("x-service-run-remaining")]).toEqual([
      200,
      "0.099984",
    ]);
  });

  test("of a key without a limit are bounded by the balance, and need no key at all", async () => {
    const credits: unknown = await (await workspaces.own("GET", "/credits")).json();
    const balance = Number(at(credits, "balance"));
    const key = await makeKey();
    const limit = balance * 0.4;
    const answers = await Promise.all(Array.from({ length: 6 }, () => ask(key, { limit })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 402, 402, 402, 402]);
    const run: unknown = await (
      await workspaces.own("POST", "/runs", { name: "by a person", limit: 0.01 })
    ).json();
    expect(at(run, "data")).toMatchObject({ key_id: null, parent_id: null });
    const served = await chat(textAt(run, "key"));
    expect([served.status, served.headers.get("x-service-run-remaining")]).toEqual([
      200,
      "0.009984",
    ]);
    const { id } = await open(textAt(run, "key"), { limit: 0.005 });
    expect(id).toStartWith("run_");
    // Its key sees the run and those in it, and none of what others opened.
    await workspaces.own("POST", "/runs", { name: "by another person", limit: 0.01 });
    const seen: unknown = await (await workspaces.as(textAt(run, "key"))("GET", "/runs")).json();
    expect(listAt(seen, "data").map((each) => at(each, "id"))).toEqual([
      id,
      textAt(run, "data.id"),
    ]);
  });

  test("counts in the usage of its key, and answers for itself", async () => {
    const made: unknown = await (
      await workspaces.own("POST", "/keys", { name: "agents", limit: 1 })
    ).json();
    const run = await open(textAt(made, "key"), { limit: 0.5 });
    await chat(run.secret);
    const key: unknown = await (
      await workspaces.own("GET", `/keys/${textAt(made, "data.hash")}`)
    ).json();
    expect(key).toMatchObject({
      real_usage: chargeUsd,
      real_usage_monthly_requests: 1,
      usage: chargeUsd,
      limit_remaining: 0.5,
    });
    expect(await show(run.secret, "self")).toMatchObject({ id: run.id, spent: chargeUsd });
    const asRun = workspaces.as(run.secret);
    expect((await asRun("POST", "/key/children", { name: "child" })).status).toBe(403);
    const code = { callback_url: "https://app.example/", code_challenge: "c".repeat(43) };
    expect((await asRun("POST", "/auth/keys/code", code)).status).toBe(403);
    const rows: unknown = await (
      await workspaces.own("GET", `/analytics/generations?key_id=${run.id}`)
    ).json();
    expect(listAt(rows, "data")).toMatchObject([{ key_name: "nightly" }]);
    const id = textAt(listAt(rows, "data")[0], "id");
    const record: unknown = await (
      await workspaces.as(run.secret)("GET", `/generation/${id}`)
    ).json();
    expect(at(record, "data.run_id")).toBe(run.id);
    // Its alerts are those of a budget with the run as its subject.
    const budget = await workspaces.own("POST", "/budgets", {
      name: "alerts of the run",
      scope: "key",
      subject: run.id,
      limit: 0.5,
    });
    expect(at(await budget.json(), "data")).toMatchObject({ spent: chargeUsd });
  });

  test("leaves its key what it used through own provider keys", async () => {
    const made: unknown = await (
      await workspaces.own("POST", "/keys", {
        name: "agents",
        limit: 1,
        include_byok_in_limit: true,
      })
    ).json();
    const usage = async (): Promise<unknown> => {
      const path = `/keys/${textAt(made, "data.hash")}`;
      const key: unknown = await (await workspaces.own("GET", path)).json();
      expect(at(key, "real_usage_monthly_requests")).toBe(2);
      return [at(key, "usage"), at(key, "byok_usage"), at(key, "limit_remaining")];
    };
    const added = await workspaces.own("POST", "/auth/byok", {
      provider_id: "acme",
      api_key: "sk-of-the-workspace",
      label: "own",
    });
    const child: unknown = await (
      await workspaces.as(textAt(made, "key"))("POST", "/key/children", {
        name: "child",
        include_byok_in_limit: false,
      })
    ).json();
    const run = await open(textAt(child, "key"), { limit: 0.5 });
    const inner = await open(run.secret, { limit: 0.2 });
    for (const { secret } of [run, inner]) await chat(secret);
    expect(await usage()).toEqual([0, 2 * chargeUsd, 0.5]);
    expect(at(await show(inner.secret, "self"), "remaining")).toBe(0.199984);
    await workspaces.as(textAt(child, "key"))("PATCH", `/runs/${run.id}`, { status: "ended" });
    const settled = [0, 2 * chargeUsd, 1 - 2 * chargeUsd];
    expect(await usage()).toEqual(settled);
    await workspaces.restart();
    expect(await usage()).toEqual(settled);
    await workspaces.own("DELETE", `/auth/byok/keys/${textAt(await added.json(), "id")}`);
  });

  test("is not shown to other keys and workspaces", async () => {
    const [key, other] = [await makeKey(), await makeKey()];
    const run = await open(key, { limit: 0.01 });
    expect((await workspaces.as(other)("GET", `/runs/${run.id}`)).status).toBe(404);
    expect((await workspaces.as(run.secret)("GET", `/runs/${run.id}`)).status).toBe(200);
    expect((await workspaces.stranger("GET", `/runs/${run.id}`)).status).toBe(404);
    expect((await workspaces.stranger("PATCH", `/runs/${run.id}`, { limit: 1 })).status).toBe(404);
  });

  test("is named by metadata, which the provider does not see", async () => {
    const key = await makeKey({ limit: 1 });
    const metadata = { run: "named; limit=0.02", kind: "nightly" };
    const served = await chat(key, {}, { metadata });
    expect([served.status, served.headers.get("x-service-run-remaining")]).toEqual([
      200,
      "0.019984",
    ]);
    expect(upstream.requests.at(-1)?.json()).toMatchObject({ metadata: { kind: "nightly" } });
    expect(JSON.stringify(upstream.requests.at(-1)?.json())).not.toContain("named");
  });

  test("changes its requests below a share of its limit, and tells the model", async () => {
    const key = await makeKey({ limit: 1 });
    const degrade = { below: 0.9, max_tokens: 3, effort: "low" };
    const run = await open(key, { limit: 0.0001, degrade });
    const before = await chat(run.secret, { "x-service-run-hint": "true" });
    expect(before.headers.get("x-service-run-degraded")).toBeNull();
    const seen = upstream.requests.at(-1)?.json();
    expect(JSON.stringify(seen)).toContain("[Budget of this run: 0.0001 of 0.0001 USD are left.]");
    const after = await chat(run.secret);
    expect(after.headers.get("x-service-run-degraded")).toBe("max_tokens, effort");
    expect(upstream.requests.at(-1)?.json()).toMatchObject({
      max_tokens: 3,
      reasoning_effort: "low",
    });
  });

  test("warns of a loop, then stops it", async () => {
    const key = await makeKey({ limit: 1 });
    const run = await open(key, { limit: 0.5, loop_guard: { warn: 2, stop: 3 } });
    const loops: (string | null)[] = [];
    for (const _ of [1, 2]) loops.push((await chat(run.secret)).headers.get("x-service-run-loop"));
    expect(loops).toEqual([null, "2"]);
    const stopped = await chat(run.secret);
    expect([stopped.status, at(await stopped.json(), "error.metadata.reason")]).toEqual([
      402,
      "run_loop",
    ]);
    const call = { id: "c", type: "function", function: { name: "ls", arguments: "{}" } };
    const turn = [
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c", content: "none" },
    ];
    const messages = [{ role: "user", content: "List." }, ...turn, ...turn, ...turn];
    expect((await chat(run.secret, {}, { messages })).status).toBe(402);
  });

  test("keeps what it holds over a restart", async () => {
    const key = await makeKey({ limit: 1 });
    const run = await open(key, { limit: 0.6, max_requests: 2 });
    await chat(run.secret);
    await workspaces.restart();
    expect((await ask(key, { limit: 0.5 })).status).toBe(402);
    expect((await chat(run.secret)).headers.get("x-service-run-remaining")).toBe("0.599968");
    expect((await chat(run.secret)).status).toBe(402);
    await workspaces.as(key)("PATCH", `/runs/${run.id}`, { status: "ended" });
    await workspaces.restart();
    expect((await ask(key, { limit: 0.9999 })).status).toBe(200);
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { isAudited } from "../../../src/access/audit/audit-log.ts";
import { endpoints } from "../../../src/endpoints/index.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { at, listAt, numberAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import {
  allEngines,
  startTwoWorkspaces,
  strangersKey,
  type TwoWorkspaces,
} from "./two-workspaces.ts";

const dayMs = 86_400_000;

describe.each(allEngines)("idempotency keys on %s", (_, freshUrl) => {
  const clock = new FakeClock();
  let stage: TwoWorkspaces;
  let key = "";
  let made = 0;
  beforeAll(async () => {
    stage = await startTwoWorkspaces(freshUrl, {}, { clock });
  });
  afterAll(() => stage.stop());
  beforeEach(() => {
    key = `key-${++made}`;
  });

  const send = (
    path: string,
    body: unknown,
    secret = testManagementKey,
    name: string | null = key,
  ): Promise<Response> =>
    fetch(stage.gateway().baseUrl + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${secret}`,
        ...(name === null ? {} : { "idempotency-key": name }),
      },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  const keysNamed = async (name: string, ask = stage.own): Promise<number> =>
    listAt(await (await ask("GET", "/keys")).json(), "data").filter(
      (each) => at(each, "name") === name,
    ).length;

  test("a repeated creation makes one key and replays the same response, marked as replayed", async () => {
    const first = await send("/keys", { name: "once" });
    const again = await send("/keys", { name: "once" });
    expect([first.status, first.headers.get("idempotent-replayed")]).toEqual([200, null]);
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
    expect([again.headers.get("cache-control"), again.headers.get("content-type")]).toEqual([
      "no-store",
      "application/json",
    ]);
    expect(again.headers.get("x-service-trace-id")).not.toBe(
      first.headers.get("x-service-trace-id"),
    );
    expect(await again.text()).toBe(await first.text());
    expect(await keysNamed("once")).toBe(1);
  });

  test("a repetition under the other base URL is the same request", async () => {
    const first: unknown = await (await send("/keys", { name: "bases" })).json();
    const other = await fetch(`${stage.gateway().baseUrl.replace("/api/v1", "/v1")}/keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${testManagementKey}`, "idempotency-key": key },
      body: JSON.stringify({ name: "bases" }),
    });
    expect(await other.json()).toEqual(first);
  });

  test.each([
    ["/keys", { name: "another body" }],
    ["/management-keys", { name: "one", scopes: ["read:credits"] }],
  ])("reusing a key for %s %j returns 409 and creates nothing", async (path, body) => {
    expect((await send("/keys", { name: "one" })).status).toBe(200);
    const refused = await errorOf(await send(path, body));
    expect(refused).toMatchObject({ status: 409, code: "conflict", param: "Idempotency-Key" });
    expect(await keysNamed("another body")).toBe(0);
  });

  test("a hundred parallel requests act once and all get the same response", async () => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => send("/keys", { name: "hundred" })),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(await Promise.all(answers.map((answer) => answer.text()))).size).toBe(1);
    expect(
      answers.filter(({ headers }) => headers.get("idempotent-replayed") === null),
    ).toHaveLength(1);
    expect(await keysNamed("hundred")).toBe(1);
  });

  test("a repeated grant is made once", async () => {
    const workspaceId = textAt(
      await (await stage.own("GET", "/admin/workspaces?search=ws_strange")).json(),
      "data.0.id",
    );
    const balance = async (): Promise<number> =>
      numberAt(await (await stage.stranger("GET", "/credits")).json(), "balance");
    const before = await balance();
    const grant = { workspace_id: workspaceId, amount: 2, bucket: "topup" };
    const answers = await Promise.all([
      send("/admin/grants", grant),
      send("/admin/grants", grant),
      send("/admin/grants", grant),
    ]);
    expect(new Set(await Promise.all(answers.map((answer) => answer.text()))).size).toBe(1);
    const list = listAt(
      await (await stage.own("GET", `/admin/grants?workspace_id=${workspaceId}`)).json(),
      "data",
    );
    expect(list.filter((each) => at(each, "amount") === 2)).toHaveLength(1);
    expect(await balance()).toBeCloseTo(before + 2);
  });

  test("requests that are not audited and requests without a body are done once too", async () => {
    const conversation = { messages: [{ role: "user", content: "Once." }] };
    const first = await (await send("/conversations", conversation)).text();
    expect(await (await send("/conversations", conversation)).text()).toBe(first);
    const { id } = JSON.parse(first) as { id: string };
    const added: string[] = [];
    key += "-message";
    for (let time = 0; time < 2; time++)
      added.push(await (await send(`/conversations/${id}/messages`, conversation)).text());
    expect([JSON.parse(added[0] ?? ""), added[1]]).toEqual([
      expect.objectContaining({ message_count: 2 }),
      added[0],
    ]);

    const prompt = { title: "t", description: "d", body: "b", category: "coding" };
    key += "-prompt";
    const promptId = textAt(await (await send("/prompts", prompt)).json(), "id");
    for (const action of [`/prompts/${promptId}/star`, `/admin/prompts/${promptId}/approve`]) {
      key += "-next";
      const answers = [await send(action, ""), await send(action, "")];
      expect(
        answers.map(({ status, headers }) => [status, headers.get("idempotent-replayed")]),
      ).toEqual([
        [200, null],
        [200, "true"],
      ]);
    }
  });

  test("each credential has its own idempotency keys", async () => {
    const mine = await send("/keys", { name: "mine" });
    const theirs = await send("/keys", { name: "mine" }, strangersKey);
    expect([mine.status, theirs.status, theirs.headers.get("idempotent-replayed")]).toEqual([
      200,
      200,
      null,
    ]);
    const child = await send("/key/children", { name: "mine" }, testLlmKey);
    expect([child.status, child.headers.get("idempotent-replayed")]).toEqual([200, null]);
    expect(await keysNamed("mine", stage.stranger)).toBe(1);
  });

  test("a refused request does not use up its idempotency key", async () => {
    expect((await send("/keys", { name: "" })).status).toBe(400);
    expect((await send("/keys", { name: "k", allowed_endpoints: ["/nowhere"] })).status).toBe(400);
    const answer = await send("/keys", { name: "at last" });
    expect([answer.status, answer.headers.get("idempotent-replayed")]).toEqual([200, null]);
  });

  test("a response is replayed after a restart and forgotten after 24 hours", async () => {
    const first = await (await send("/keys", { name: "for a day" })).text();
    await stage.restart();
    clock.advance(dayMs - 1_000);
    expect(await (await send("/keys", { name: "for a day" })).text()).toBe(first);
    clock.advance(2_000);
    const later = await send("/keys", { name: "for a day" });
    expect([later.status, later.headers.get("idempotent-replayed")]).toEqual([200, null]);
    expect(await keysNamed("for a day")).toBe(2);
  });

  test("neither the key, the request nor the response's secret is stored in plain text", async () => {
    const secret = textAt(await (await send("/keys", { name: "sealed-name" })).json(), "key");
    const rows = await stage
      .gateway()
      .app.storage.database.selectFrom("idempotent_requests")
      .selectAll()
      .execute();
    const text = JSON.stringify(rows);
    expect(text).toContain('"answer":"v1|');
    for (const clear of [secret, secret.slice(12), key, "sealed-name"])
      expect(text).not.toContain(clear);
  });

  test("an interrupted request is not repeated and returns 409", async () => {
    await send("/keys", { name: "cut" });
    await stage
      .gateway()
      .app.storage.database.updateTable("idempotent_requests")
      .set({ state: "started", answer: null })
      .where("started_at_ms", "=", clock.nowMs())
      .execute();
    const underWay = await errorOf(await send("/keys", { name: "cut" }));
    expect(underWay).toMatchObject({ status: 409, message: expect.stringContaining("under way") });
    expect(underWay.headers.get("retry-after")).toBe("1");
    clock.advance(61_000);
    expect(await errorOf(await send("/keys", { name: "cut" }))).toMatchObject({
      status: 409,
      message: expect.stringContaining("cut off"),
    });
    expect(await keysNamed("cut")).toBe(1);
  });

  test.each([" ", "x".repeat(256), "ü"])("the idempotency key %j returns 400", async (name) => {
    const refused = await fetch(`${stage.gateway().baseUrl}/keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${testManagementKey}`, "idempotency-key": name },
      body: '{"name":"k"}',
    });
    expect(await errorOf(refused)).toMatchObject({ status: 400, param: "Idempotency-Key" });
  });
});

/**
 * Routes of a person's own sign-in: their answers set cookies of one browser, which an answer that
 * is given again must not.
 */
const repeatable = [/^\/api\/auth\//];

/**
 * Routes that take telemetry and keep nothing of it: what is sent twice leaves as little as what is
 * sent once.
 */
const discarding = ["/v1/metrics", "/v1/logs", "/v1/traces"];

/** Routes that answer a question and change nothing. */
const asking = ["/routing/explain", "/api/show"];

/**
 * Routes whose bodies are bytes on their way to disk, which no key is compared with, and routes of
 * providers, which receive the key themselves.
 */
const unrepeated = ["/files", "/uploads/:id/parts", "/p/:provider/*"];

test("every route that creates or moves something accepts an idempotency key", () => {
  const unaudited = endpoints.filter(
    (endpoint) => endpoint.unaudited && endpoint.method === "POST",
  );
  expect(
    unaudited
      .filter(({ idempotent }) => !idempotent)
      .map(({ path }) => path)
      .toSorted(),
  ).toEqual([...asking, ...discarding, ...unrepeated].toSorted());
  const posts = endpoints.filter((endpoint) => endpoint.method === "POST" && isAudited(endpoint));
  const without = posts.filter(
    ({ idempotent, path }) => !idempotent && !repeatable.some((pattern) => pattern.test(path)),
  );
  expect(without.map(({ path }) => path)).toEqual([]);
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

/** 11 tokens in at 500 nano-USD and 7 out at 1500. */
const chargeUsd = 0.000016;
/**
 * A limit for one request and not for a second: it may cost 0.000021, since its input is estimated at
 * 21 tokens.
 */
const oneUsd = 0.000025;

interface Made {
  id: string;
  hash: string;
  secret: string;
}

describe.each(engines)("LLM keys on %s", (_, freshUrl) => {
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

  const made = (answer: unknown): Made => ({
    id: textAt(answer, "data.id"),
    hash: textAt(answer, "data.hash"),
    secret: textAt(answer, "key"),
  });
  const make = async (fields: Record<string, unknown> = {}): Promise<Made> =>
    made(await (await workspaces.own("POST", "/keys", { name: "k", ...fields })).json());
  const chat = async ({ secret }: Pick<Made, "secret">): Promise<number> => {
    const response = await workspaces.as(secret)(
      "POST",
      "/chat/completions",
      chatRequest({ max_tokens: 7 }),
    );
    await response.text();
    return response.status;
  };
  const show = async ({ hash }: Made): Promise<unknown> =>
    (await workspaces.own("GET", `/keys/${hash}`)).json();
  const change = (key: Made, fields: unknown): Promise<Response> =>
    workspaces.own("PATCH", `/keys/${key.hash}`, fields);
  const listed = async (query = "?include_disabled=true"): Promise<unknown[]> =>
    listAt(await (await workspaces.own("GET", `/keys${query}`)).json(), "data").map((key) =>
      at(key, "id"),
    );

  test("a single key has the same record as in the list", async () => {
    const key = await make({ limit: 3, allowed_models: ["ACME/Large"], tpm: 100 });
    const shown = await show(key);
    const list = listAt(await (await workspaces.own("GET", "/keys")).json(), "data");
    const record = list.find((each) => at(each, "id") === key.id);
    expect(record).toMatchObject({ limit: 3, allowed_models: ["acme/large"], tpm: 100 });
    expect(shown).toEqual({ ...Object(record), data: record });
    expect(JSON.stringify(shown)).not.toContain(key.secret);
  });

  test("PATCH changes only the fields that are sent, and null removes a limit", async () => {
    const key = await make({
      limit: 5,
      limit_reset: "daily",
      rate_limit: 30,
      expires_at: "2030-01-31T00:00:00Z",
      tpm: 70,
    });
    const changed = await change(key, {
      name: "renamed",
      limit: 7.5,
      limit_reset: "weekly",
      include_byok_in_limit: true,
      rate_limit: 40,
      expires_at: "2031-01-31T02:00:00+02:00",
    });
    expect(changed.status).toBe(200);
    expect(await changed.json()).toEqual({
      data: expect.objectContaining({
        id: key.id,
        hash: key.hash,
        name: "renamed",
        limit: 7.5,
        limit_remaining: 7.5,
        limit_reset: "weekly",
        include_byok_in_limit: true,
        rate_limit: 40,
        expires_at: "2031-01-31T00:00:00.000Z",
        tpm: 70,
        disabled: false,
        updated_at: expect.stringMatching(/Z$/),
      }),
    });
    await change(key, { limit: null, limit_reset: null, rate_limit: null, expires_at: null });
    expect(await show(key)).toMatchObject({
      name: "renamed",
      limit: null,
      limit_remaining: null,
      limit_reset: null,
      rate_limit: 2400,
      expires_at: null,
      tpm: 70,
    });
    const before = await show(key);
    expect((await change(key, {})).status).toBe(200);
    expect(await show(key)).toEqual(before);
  });

  test.each([
    [{ name: "" }, "name"],
    [{ name: null }, "name"],
    [{ name: "x\u0000" }, "name"],
    [{ disabled: null }, "disabled"],
    [{ disabled: "yes" }, "disabled"],
    [{ include_byok_in_limit: 1 }, "include_byok_in_limit"],
    [{ limit: -1 }, "limit"],
    [{ limit: "7" }, "limit"],
    [{ limit_reset: "hourly" }, "limit_reset"],
    [{ rate_limit: 0 }, "rate_limit"],
    [{ expires_at: "soon" }, "expires_at"],
    [{ name: "ok", allowed_models: [""] }, "allowed_models[0]"],
    [{ name: "ok", allowed_endpoints: ["/nowhere"] }, "allowed_endpoints[0]"],
    [{ tpm: 0 }, "tpm"],
    [{ hash: "f" }, "hash"],
    [{ nonsense: 1 }, "nonsense"],
  ])(
    "PATCH with %j returns 400 that names the field and changes nothing",
    async (fields, param) => {
      const key = await make({ name: "untouched" });
      const before = await show(key);
      expect(await errorOf(await change(key, fields))).toMatchObject({
        status: 400,
        code: "bad_request",
        param,
      });
      expect(await show(key)).toEqual(before);
    },
  );

  test("a disabled key is refused from the next request on and works again once it is enabled", async () => {
    const key = await make();
    expect(await chat(key)).toBe(200);
    expect((await change(key, { disabled: true })).status).toBe(200);
    expect(await chat(key)).toBe(401);
    expect(await listed("")).not.toContain(key.id);
    expect(await listed()).toContain(key.id);
    await change(key, { disabled: false });
    expect(await chat(key)).toBe(200);
  });

  test("a lower limit and an expiry apply to the next request", async () => {
    const key = await make({ limit: 1 });
    expect(await chat(key)).toBe(200);
    await change(key, { limit: chargeUsd });
    expect(await chat(key)).toBe(402);
    await change(key, { limit: 1, expires_at: "2020-01-01T00:00:00Z" });
    expect(await chat(key)).toBe(401);
  });

  test("a rotation invalidates the old secret at once and keeps the key's spending and rate windows", async () => {
    const key = await make({ name: "rotated", limit: chargeUsd + oneUsd, limit_reset: "daily" });
    expect(await chat(key)).toBe(200);
    const before = Object(await show(key));
    const response = await workspaces.own("POST", `/keys/${key.hash}/rotate`);
    expect(response.headers.get("cache-control")).toBe("no-store");
    const answer: unknown = await response.json();
    const rotated = made(answer);
    expect(rotated.secret).toMatch(/^sk-svc-v1-[0-9A-Za-z]{40,}$/);
    expect(rotated.hash).not.toBe(key.hash);
    expect(await chat(key)).toBe(401);
    expect((await workspaces.own("GET", `/keys/${key.hash}`)).status).toBe(404);
    const { data: _, ...kept } = before;
    expect(at(answer, "data")).toEqual({
      ...kept,
      hash: rotated.hash,
      label: expect.stringMatching(/^sk-svc-v1-.{4}\.\.\./),
      updated_at: expect.any(String),
    });
    expect(at(answer, "data.real_usage")).toBe(chargeUsd);
    expect(await chat(rotated)).toBe(200);
    expect(await chat(rotated)).toBe(402);
    expect(await show(rotated)).toMatchObject({
      real_usage: 2 * chargeUsd,
      real_usage_monthly_requests: 2,
      limit_remaining: 0.000009,
    });
  });

  test("one of several parallel rotations succeeds and the others return 409", async () => {
    const key = await make();
    const answers = await Promise.all(
      [1, 2, 3].map(() => workspaces.own("POST", `/keys/${key.hash}/rotate`)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const won = answers.find(({ status }) => status === 200);
    const lost = answers.find(({ status }) => status === 409);
    if (won === undefined || lost === undefined) throw new Error("no rotation won, or none lost");
    expect(await errorOf(lost)).toMatchObject({ code: "conflict", type: "conflict_error" });
    expect(await chat(made(await won.json()))).toBe(200);
    expect(await chat(key)).toBe(401);
  });

  test("a deleted key is refused and not found, but its row is kept", async () => {
    const key = await make();
    expect(await chat(key)).toBe(200);
    expect(await (await workspaces.own("DELETE", `/keys/${key.hash}`)).json()).toEqual({
      deleted: true,
      id: key.id,
    });
    expect(await chat(key)).toBe(401);
    for (const [method, path] of [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/rotate"],
    ] as const) {
      const answer = await workspaces.own(
        method,
        `/keys/${key.hash}${path}`,
        method === "PATCH" ? { name: "again" } : undefined,
      );
      expect(await errorOf(answer)).toMatchObject({ status: 404, code: "not_found" });
    }
    expect(await listed()).not.toContain(key.id);
    const { database } = workspaces.gateway().app.storage;
    const row = await database
      .selectFrom("llm_keys")
      .select("deleted_at_ms")
      .where("id", "=", key.id)
      .executeTakeFirstOrThrow();
    expect(row.deleted_at_ms).toBeNumber();
  });

  test("a change in parallel to a deletion does not restore the key", async () => {
    const key = await make();
    const writes = [0, 1, 2, 3].map((count) => change(key, { name: `n${count}` }));
    const deletion = workspaces.own("DELETE", `/keys/${key.hash}`);
    const late = [4, 5, 6, 7].map((count) => change(key, { name: `n${count}`, disabled: false }));
    const statuses = (await Promise.all([...writes, ...late])).map(({ status }) => status);
    expect((await deletion).status).toBe(200);
    expect(statuses.filter((status) => status !== 200 && status !== 404)).toEqual([]);
    expect(await chat(key)).toBe(401);
    expect(await listed()).not.toContain(key.id);
  });

  test("another workspace cannot see or change a key", async () => {
    const key = await make({ name: "mine" });
    const before = await show(key);
    for (const [method, path] of [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/rotate"],
    ] as const) {
      const answer = await workspaces.stranger(
        method,
        `/keys/${key.hash}${path}`,
        method === "PATCH" ? { name: "theirs" } : undefined,
      );
      expect(await errorOf(answer)).toMatchObject({ status: 404, code: "not_found" });
    }
    expect(await (await workspaces.stranger("GET", "/keys?include_disabled=true")).json()).toEqual({
      object: "list",
      data: [],
    });
    expect(await show(key)).toEqual(before);
    expect(await chat(key)).toBe(200);
  });

  test("an LLM key gets 401 that names the required credential", async () => {
    const key = await make();
    for (const [method, path] of [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/rotate"],
    ] as const) {
      const answer = await workspaces.as(key.secret)(
        method,
        `/keys/${key.hash}${path}`,
        method === "PATCH" ? { name: "x" } : undefined,
      );
      const error = await errorOf(answer);
      expect(error).toMatchObject({ status: 401, code: "unauthorized" });
      expect(at(error.metadata, "hint")).toContain("llm-keys");
    }
  });

  test("changes, rotations, deletions and last use survive a restart", async () => {
    const [changed, rotated, deleted, unused] = [
      await make(),
      await make(),
      await make(),
      await make(),
    ];
    await change(changed, { disabled: true, name: "kept" });
    await workspaces.own("DELETE", `/keys/${deleted.hash}`);
    const next = made(await (await workspaces.own("POST", `/keys/${rotated.hash}/rotate`)).json());
    expect(await chat(next)).toBe(200);
    const shown = await show(next);
    expect(Date.parse(textAt(shown, "last_used_at"))).toBeGreaterThanOrEqual(
      Date.parse(textAt(shown, "created_at")),
    );
    await workspaces.restart();
    expect(await show(next)).toEqual(shown);
    expect(await show(changed)).toMatchObject({ name: "kept", disabled: true, last_used_at: null });
    expect(await show(unused)).toMatchObject({ last_used_at: null });
    expect([
      await chat(changed),
      await chat(rotated),
      await chat(deleted),
      await chat(next),
    ]).toEqual([401, 401, 401, 200]);
  }, 240_000);
});

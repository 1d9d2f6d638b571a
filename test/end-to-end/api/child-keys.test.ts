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

describe.each(engines)("child keys on %s", (_, freshUrl) => {
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

  const made = async (response: Promise<Response>): Promise<Made> => {
    const answer: unknown = await (await response).json();
    return {
      id: textAt(answer, "data.id"),
      hash: textAt(answer, "data.hash"),
      secret: textAt(answer, "key"),
    };
  };
  const make = (fields: Record<string, unknown> = {}): Promise<Made> =>
    made(workspaces.own("POST", "/keys", { name: "parent", ...fields }));
  const ask = (parent: Made, fields: Record<string, unknown> = {}): Promise<Response> =>
    workspaces.as(parent.secret)("POST", "/key/children", { name: "child", ...fields });
  const makeChild = (parent: Made, fields: Record<string, unknown> = {}): Promise<Made> =>
    made(ask(parent, fields));
  const chat = async ({ secret }: Made): Promise<number> => {
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

  test("a child inherits its parent's limits and names its parent", async () => {
    const expiry = "2031-01-31T00:00:00.000Z";
    const bounds = {
      limit: 5,
      limit_reset: "weekly",
      include_byok_in_limit: true,
      rate_limit: 30,
      tpm: 1_000,
      expires_at: expiry,
      allowed_models: ["acme/large"],
      allowed_endpoints: ["/api/v1/key/children", "/api/v1/chat/completions"],
    };
    const parent = await make(bounds);
    const response = await ask(parent);
    expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
    const answer: unknown = await response.json();
    expect(textAt(answer, "key")).toMatch(/^sk-svc-v1-[0-9A-Za-z]{40,}$/);
    expect(at(answer, "data")).toMatchObject({
      name: "child",
      parent_key_id: parent.id,
      ...bounds,
    });
    expect(Object.keys(Object(await show(parent)))).not.toContain("parent_key_id");
    expect(await show({ ...parent, hash: textAt(answer, "data.hash") })).toMatchObject({
      parent_key_id: parent.id,
    });
  });

  test("a child can have lower limits than its parent", async () => {
    const parent = await make({
      limit: 5,
      rate_limit: 30,
      tpm: 1_000,
      expires_at: "2031-01-31T00:00:00Z",
    });
    const less = {
      limit: 1,
      limit_reset: "daily",
      rate_limit: 10,
      tpm: 10,
      expires_at: "2030-01-31T00:00:00.000Z",
      allowed_models: ["acme/large"],
      allowed_endpoints: ["/api/v1/chat/completions"],
    };
    expect(at(await (await ask(parent, less)).json(), "data")).toMatchObject(less);
  });

  test.each([
    [{ limit: 5.01 }, "limit"],
    [{ rate_limit: 31 }, "rate_limit"],
    [{ tpm: 1_001 }, "tpm"],
    [{ expires_at: "2031-01-31T00:00:01Z" }, "expires_at"],
    [{ expires_at: "2020-01-01T00:00:00Z" }, "expires_at"],
    [{ allowed_models: ["acme/large", "acme/other"] }, "allowed_models[1]"],
    [{ allowed_endpoints: ["/key/children", "/keys"] }, "allowed_endpoints[1]"],
    [{ allowed_endpoints: [] }, "allowed_endpoints"],
    [{ name: "" }, "name"],
    [{ limit: -1 }, "limit"],
  ])(
    "%j exceeds the parent's limits or is invalid, and returns 400 that names the field",
    async (fields, param) => {
      const parent = await make({
        limit: 5,
        rate_limit: 30,
        tpm: 1_000,
        expires_at: "2031-01-31T00:00:00Z",
        allowed_models: ["acme/large"],
        allowed_endpoints: ["/api/v1/key/children", "/api/v1/chat/completions"],
      });
      expect(await errorOf(await ask(parent, fields))).toMatchObject({
        status: 400,
        code: "bad_request",
        param,
      });
    },
  );

  test("a child key, or a key without access to the route, cannot create child keys", async () => {
    const child = await makeChild(await make());
    expect(await errorOf(await ask(child))).toMatchObject({ status: 403, code: "forbidden" });
    const passing = await make({ scopes: ["inference", "passthrough"] });
    expect(await errorOf(await ask(passing, { scopes: ["passthrough"] }))).toMatchObject({
      status: 403,
      param: "scopes",
    });
    const inferenceOnly = await make({ allowed_endpoints: ["/chat/completions"] });
    expect(await errorOf(await ask(inferenceOnly))).toMatchObject({
      status: 403,
      code: "insufficient_scope",
    });
  });

  test("a child's spending counts towards its parent, and the parent's limit applies to both", async () => {
    const parent = await make({ limit: chargeUsd + oneUsd, limit_reset: "daily" });
    const [first, second] = [await makeChild(parent), await makeChild(parent)];
    expect([await chat(first), await chat(second)]).toEqual([200, 200]);
    expect([await chat(first), await chat(second), await chat(parent)]).toEqual([402, 402, 402]);
    expect(await show(parent)).toMatchObject({
      real_usage: 2 * chargeUsd,
      limit_remaining: 0.000009,
    });
    expect(await show(first)).toMatchObject({ real_usage: chargeUsd, limit_remaining: oneUsd });
  });

  test("reaching a child's own limit blocks only that child", async () => {
    const parent = await make({ limit: 1 });
    const child = await makeChild(parent, { limit: oneUsd });
    expect([await chat(child), await chat(child), await chat(parent)]).toEqual([200, 402, 200]);
  });

  test("parallel children cannot exceed their parent's limit together", async () => {
    const parent = await make({ limit: oneUsd });
    const children = await Promise.all(Array.from({ length: 8 }, () => makeChild(parent)));
    const statuses = await Promise.all(children.map(chat));
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 402)).toHaveLength(7);
  });

  test("requests and tokens per minute count for the child and its parent", async () => {
    const parent = await make({ rate_limit: 3 });
    const [first, second] = [await makeChild(parent), await makeChild(parent, { rate_limit: 1 })];
    expect([await chat(first), await chat(second), await chat(second)]).toEqual([200, 200, 429]);
    expect([await chat(parent), await chat(first), await chat(parent)]).toEqual([200, 429, 429]);
    const bounded = await make({ tpm: 30 });
    const child = await makeChild(bounded);
    const statuses = [await chat(child), await chat(child), await chat(child), await chat(bounded)];
    expect(statuses[0]).toBe(200);
    expect(statuses.at(-1)).toBe(429);
  });

  test("a child stops working when its parent is disabled, expired or deleted, and survives a rotation", async () => {
    const parent = await make();
    const child = await makeChild(parent);
    await workspaces.own("PATCH", `/keys/${parent.hash}`, { disabled: true });
    expect(await chat(child)).toBe(401);
    await workspaces.own("PATCH", `/keys/${parent.hash}`, {
      disabled: false,
      expires_at: "2020-01-01T00:00:00Z",
    });
    expect(await chat(child)).toBe(401);
    await workspaces.own("PATCH", `/keys/${parent.hash}`, { expires_at: null });
    expect(await chat(child)).toBe(200);
    const rotated = await made(workspaces.own("POST", `/keys/${parent.hash}/rotate`));
    expect(await chat(child)).toBe(200);
    await workspaces.own("PATCH", `/keys/${rotated.hash}`, { limit: 0 });
    expect(await chat(child)).toBe(402);
    await workspaces.own("DELETE", `/keys/${rotated.hash}`);
    expect(await chat(child)).toBe(401);
    expect((await workspaces.own("GET", `/keys/${child.hash}`)).status).toBe(404);
    const listed = listAt(
      await (await workspaces.own("GET", "/keys?include_disabled=true")).json(),
      "data",
    );
    expect(listed.map((key) => at(key, "id"))).not.toContain(child.id);
  });

  test("what a parent may no longer use is refused to its child and the child's runs", async () => {
    const parent = await make();
    const child = await makeChild(parent);
    const opened = await workspaces.as(child.secret)("POST", "/runs", { name: "run", limit: 1 });
    const run = { ...child, secret: textAt(await opened.json(), "key") };
    const all = (): Promise<number[]> => Promise.all([parent, child, run].map(chat));
    expect(await all()).toEqual([200, 200, 200]);
    const lists = { allowed_models: ["acme/other"], allowed_endpoints: ["/api/v1/embeddings"] };
    for (const [field, list] of Object.entries(lists)) {
      await workspaces.own("PATCH", `/keys/${parent.hash}`, { [field]: list });
      expect([field, ...(await all())]).toEqual([field, 403, 403, 403]);
      await workspaces.own("PATCH", `/keys/${parent.hash}`, { [field]: null });
    }
    expect(await all()).toEqual([200, 200, 200]);
    await workspaces.own("PATCH", `/security/keys/${parent.hash}`, { zdr: true });
    expect(await all()).toEqual([403, 403, 403]);
    expect(at(await show(child), "data")).toMatchObject({
      allowed_models: null,
      allowed_endpoints: null,
    });
  });

  test("a parent can delete its own children and no other key", async () => {
    const [parent, other] = [await make(), await make()];
    const [child, foreign] = [await makeChild(parent), await makeChild(other)];
    const remove = (hash: string): Promise<Response> =>
      workspaces.as(parent.secret)("DELETE", `/key/children/${hash}`);
    for (const hash of [parent.hash, other.hash, foreign.hash, "none"])
      expect(await errorOf(await remove(hash))).toMatchObject({ status: 404, code: "not_found" });
    expect(await (await remove(child.hash)).json()).toEqual({ deleted: true, id: child.id });
    expect([await chat(child), await chat(foreign), await chat(parent)]).toEqual([401, 200, 200]);
  });

  test("parents and the spending of children, deleted ones too, survive a restart", async () => {
    const parent = await make({ limit: 2 * chargeUsd + oneUsd });
    const [kept, gone] = [await makeChild(parent), await makeChild(parent)];
    expect([await chat(kept), await chat(gone)]).toEqual([200, 200]);
    await workspaces.as(parent.secret)("DELETE", `/key/children/${gone.hash}`);
    const before = await show(parent);
    expect(before).toMatchObject({ real_usage: 2 * chargeUsd });
    await workspaces.restart();
    expect(await show(parent)).toEqual(before);
    expect(await chat(gone)).toBe(401);
    expect([await chat(kept), await chat(parent)]).toEqual([200, 402]);
    await workspaces.own("PATCH", `/keys/${parent.hash}`, { disabled: true });
    expect(await chat(kept)).toBe(401);
  }, 240_000);
});

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe.each(engines)("management keys on %s", (_, freshUrl) => {
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl);
  }, 240_000);
  afterAll(() => workspaces.stop());

  const create = (fields: unknown, secret = testManagementKey): Promise<Response> =>
    workspaces.as(secret)("POST", "/management-keys", fields);
  const make = async (
    fields: Record<string, unknown> = {},
  ): Promise<{ id: string; secret: string }> => {
    const answer: unknown = await (
      await create({ name: "m", scopes: ["read:credits"], ...fields })
    ).json();
    return { id: textAt(answer, "data.id"), secret: textAt(answer, "key") };
  };
  const list = async (query = ""): Promise<unknown[]> =>
    listAt(await (await workspaces.own("GET", `/management-keys${query}`)).json(), "data");
  const recordOf = async (id: string): Promise<unknown> =>
    (await list("?include_invalid=true")).find((key) => at(key, "id") === id);
  const balance = async (secret: string): Promise<number> =>
    (await workspaces.as(secret)("GET", "/credits")).status;

  test("creating a key returns its whole record, and its secret only once", async () => {
    const response = await create({
      name: " reporting ",
      description: "for the books",
      scopes: ["read:credits", "write:presets", "read:credits"],
      expires_at: "2031-01-31T02:00:00+02:00",
    });
    expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
    const answer: unknown = await response.json();
    const secret = textAt(answer, "key");
    expect(secret).toMatch(/^ak_live_[0-9A-Za-z]{40,}$/);
    const record = {
      id: expect.stringMatching(/^mgk_[0-9a-f]{32}$/),
      object: "management_key",
      name: "reporting",
      description: "for the books",
      scopes: ["read:credits", "write:presets"],
      operator: false,
      label: `${secret.slice(0, 12)}...${secret.slice(-4)}`,
      created_at: expect.stringMatching(iso),
      expires_at: "2031-01-31T00:00:00.000Z",
      last_used_at: null,
      status: "active",
      revoked_at: null,
      revocation_reason: null,
    };
    expect(answer).toEqual({ key: secret, data: record });
    expect((await list())[0]).toEqual(record);
    expect(JSON.stringify(await list("?include_invalid=true"))).not.toContain(secret);
  });

  test("a key can do only what its scopes allow, where write implies read", async () => {
    const { id, secret } = await make({ scopes: ["write:presets"] });
    expect((await workspaces.as(secret)("GET", "/presets")).status).toBe(200);
    expect(await balance(secret)).toBe(403);
    expect(await recordOf(id)).toMatchObject({ last_used_at: expect.stringMatching(iso) });
  });

  test.each([
    [{ scopes: ["read:credits"] }, "name"],
    [{ name: " ", scopes: ["read:credits"] }, "name"],
    [{ name: "m" }, "scopes"],
    [{ name: "m", scopes: [] }, "scopes"],
    [{ name: "m", scopes: "read:credits" }, "scopes"],
    [{ name: "m", scopes: ["read:credits", "read:everything"] }, "scopes[1]"],
    [{ name: "m", scopes: ["write:credits"] }, "scopes[0]"],
    [{ name: "m", scopes: ["read:credits"], expires_at: "never" }, "expires_at"],
    [{ name: "m", scopes: ["read:credits"], expires_at: "2020-01-01T00:00:00Z" }, "expires_at"],
    [{ name: "m", scopes: ["read:credits"], description: 7 }, "description"],
  ])("%j returns 400 that names the field", async (fields, param) => {
    const before = (await list("?include_invalid=true")).length;
    expect(await errorOf(await create(fields))).toMatchObject({
      status: 400,
      code: "bad_request",
      param,
    });
    expect((await list("?include_invalid=true")).length).toBe(before);
  });

  test("a key can grant only scopes that it has, where write implies read", async () => {
    const { secret } = await make({
      scopes: ["write:management-keys", "write:presets", "read:byok"],
    });
    const granted = await create(
      { name: "less", scopes: ["read:presets", "write:presets", "read:management-keys"] },
      secret,
    );
    expect(granted.status).toBe(200);
    for (const scopes of [
      ["read:presets", "write:byok"],
      ["read:presets", "inference"],
      ["read:presets", "read:credits"],
    ]) {
      const error = await errorOf(await create({ name: "more", scopes }, secret));
      expect(error).toMatchObject({ status: 403, code: "insufficient_scope", param: "scopes[1]" });
      expect(error.metadata).toMatchObject({ required_scope: scopes[1] });
    }
  });

  test("a revoked key is refused at the next request and listed with its reason on request", async () => {
    const { id, secret } = await make();
    expect(await balance(secret)).toBe(200);
    const revoked = await workspaces.own("DELETE", `/management-keys/${id}`, {
      revocation_reason: "left the company",
    });
    expect(await revoked.json()).toEqual({ deleted: true, id });
    expect(await balance(secret)).toBe(401);
    expect((await list()).map((key) => at(key, "id"))).not.toContain(id);
    expect(await recordOf(id)).toMatchObject({
      status: "revoked",
      revoked_at: expect.stringMatching(iso),
      revocation_reason: "left the company",
    });
    expect(await errorOf(await workspaces.own("DELETE", `/management-keys/${id}`))).toMatchObject({
      status: 404,
      code: "not_found",
    });
    expect(await recordOf(id)).toMatchObject({ revocation_reason: "left the company" });
  });

  test("a revocation needs no body and rejects an invalid reason", async () => {
    const [first, second] = [await make(), await make()];
    const wrong = await workspaces.own("DELETE", `/management-keys/${first.id}`, {
      revocation_reason: 7,
    });
    expect(await errorOf(wrong)).toMatchObject({ status: 400, param: "revocation_reason" });
    expect(await balance(first.secret)).toBe(200);
    expect((await workspaces.own("DELETE", `/management-keys/${second.id}`)).status).toBe(200);
    expect(await recordOf(second.id)).toMatchObject({ status: "revoked", revocation_reason: null });
  });

  test("a key can revoke itself", async () => {
    const { id, secret } = await make({ scopes: ["write:management-keys"] });
    expect((await workspaces.as(secret)("DELETE", `/management-keys/${id}`)).status).toBe(200);
    expect((await workspaces.as(secret)("GET", "/management-keys")).status).toBe(401);
  });

  test("include_invalid accepts only true and false", async () => {
    expect(
      await errorOf(await workspaces.own("GET", "/management-keys?include_invalid=1")),
    ).toMatchObject({ status: 400, code: "bad_request", param: "include_invalid" });
  });

  test("inference rejects management keys, and these routes reject LLM keys", async () => {
    const { secret } = await make({ scopes: ["inference"] });
    const inference = await errorOf(await workspaces.as(secret)("POST", "/chat/completions", {}));
    expect(inference).toMatchObject({ status: 401, code: "unauthorized" });
    expect(at(inference.metadata, "hint")).toBeString();
    const refused = await errorOf(
      await create({ name: "m", scopes: ["read:credits"] }, testLlmKey),
    );
    expect(refused).toMatchObject({ status: 401, code: "unauthorized" });
    expect(at(refused.metadata, "hint")).toContain("write:management-keys");
  });

  test("another workspace cannot see or revoke a key", async () => {
    const { id, secret } = await make();
    const theirs = listAt(
      await (await workspaces.stranger("GET", "/management-keys?include_invalid=true")).json(),
      "data",
    );
    expect(theirs).toHaveLength(1);
    expect(theirs.map((key) => at(key, "id"))).not.toContain(id);
    expect(
      await errorOf(await workspaces.stranger("DELETE", `/management-keys/${id}`)),
    ).toMatchObject({ status: 404, code: "not_found" });
    expect(await balance(secret)).toBe(200);
  });

  test("creations, revocations and last use survive a restart", async () => {
    const [kept, gone] = [await make(), await make()];
    await balance(kept.secret);
    await workspaces.own("DELETE", `/management-keys/${gone.id}`, { revocation_reason: "tidy" });
    const before = [await recordOf(kept.id), await recordOf(gone.id)];
    await workspaces.restart();
    expect([await recordOf(kept.id), await recordOf(gone.id)]).toEqual(before);
    expect([await balance(kept.secret), await balance(gone.secret)]).toEqual([200, 401]);
  }, 240_000);
});

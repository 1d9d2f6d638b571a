import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dayMs } from "../../../src/platform/kernel/clock.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { allEngines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

/**
 * Contract, "States and transitions", table "Keys": a test for each row, named after it. The rows
 * of the table "LLM API key record" are in `key-creation.test.ts`, "Credential families" in
 * `credentials.test.ts`, "Scopes" in `scope-matrix.test.ts`.
 */
describe.each(allEngines)("the documented key states on %s", (_, freshUrl) => {
  const clock = new FakeClock();
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(
      freshUrl,
      {},
      { clock, probeKey: async () => ({ outcome: "accepted", reason: null }) },
    );
  }, 240_000);
  afterAll(() => workspaces.stop());

  const json = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await workspaces.own(method, path, body);
    const answer: unknown = await response.json();
    if (!response.ok)
      throw new Error(`${method} ${path} answered ${response.status}: ${JSON.stringify(answer)}`);
    return answer;
  };
  const use = async (secret: string): Promise<number> =>
    (await workspaces.as(secret)("GET", "/models")).status;
  const made = async (): Promise<{ id: string; hash: string; secret: string }> => {
    const answer = await json("POST", "/keys", { name: "k" });
    return {
      id: textAt(answer, "data.id"),
      hash: textAt(answer, "data.hash"),
      secret: textAt(answer, "key"),
    };
  };
  const idsAt = async (path: string): Promise<unknown[]> =>
    listAt(await json("GET", path), "data").map((key) => at(key, "id"));
  const managed = async (fields: object = {}): Promise<{ id: string; secret: string }> => {
    const answer = await json("POST", "/management-keys", {
      name: "m",
      scopes: ["read:credits"],
      ...fields,
    });
    return { id: textAt(answer, "data.id"), secret: textAt(answer, "key") };
  };
  const balance = async (secret: string): Promise<number> =>
    (await workspaces.as(secret)("GET", "/credits")).status;
  const byok = async (apiKey: string): Promise<string> =>
    textAt(await json("POST", "/auth/byok", { provider_id: "openai", api_key: apiKey }), "id");
  const kindOf = async (id: string): Promise<unknown> => {
    const keys = listAt(await json("GET", "/auth/byok"), "data").flatMap((group) =>
      listAt(group, "keys"),
    );
    return at(
      keys.find((key) => at(key, "id") === id),
      "kind",
    );
  };

  test("LLM key active | PATCH disabled: true | disabled | listed only with include_disabled=true", async () => {
    const { id, hash, secret } = await made();
    expect([await use(secret), (await idsAt("/keys")).includes(id)]).toEqual([200, true]);
    await json("PATCH", `/keys/${hash}`, { disabled: true });
    expect([
      await use(secret),
      (await idsAt("/keys")).includes(id),
      (await idsAt("/keys?include_disabled=true")).includes(id),
    ]).toEqual([401, false, true]);
  });

  test("LLM key disabled | PATCH disabled: false | active", async () => {
    const { id, hash, secret } = await made();
    await json("PATCH", `/keys/${hash}`, { disabled: true });
    await json("PATCH", `/keys/${hash}`, { disabled: false });
    expect([await use(secret), (await idsAt("/keys")).includes(id)]).toEqual([200, true]);
  });

  test("LLM key (any) | DELETE | soft-deleted | {deleted: true, id}", async () => {
    for (const disabled of [false, true]) {
      const { id, hash, secret } = await made();
      if (disabled) await json("PATCH", `/keys/${hash}`, { disabled });
      expect(await json("DELETE", `/keys/${hash}`)).toEqual({ deleted: true, id });
      expect([
        await use(secret),
        (await idsAt("/keys?include_disabled=true")).includes(id),
      ]).toEqual([401, false]);
      const { database } = workspaces.gateway().app.storage;
      const row = await database
        .selectFrom("llm_keys")
        .select("id")
        .where("id", "=", id)
        .executeTakeFirst();
      expect(row).toEqual({ id });
    }
  });

  test("LLM key (any) | rotate | same key, new secret and hash | old secret dead at once, the second of two gets 409", async () => {
    const { id, hash, secret } = await made();
    const answers = await Promise.all(
      [0, 1].map(() => workspaces.own("POST", `/keys/${hash}/rotate`)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    const rotated: unknown = await answers.find(({ status }) => status === 200)?.json();
    expect(at(rotated, "data.id")).toBe(id);
    expect(at(rotated, "data.hash")).not.toBe(hash);
    expect([await use(secret), await use(textAt(rotated, "key"))]).toEqual([401, 200]);
  });

  test("management key active | DELETE with revocation_reason | revoked | 401 next, listed only with include_invalid=true", async () => {
    const { id, secret } = await managed();
    expect(await balance(secret)).toBe(200);
    await json("DELETE", `/management-keys/${id}`, { revocation_reason: "left" });
    expect(await balance(secret)).toBe(401);
    expect([
      (await idsAt("/management-keys")).includes(id),
      (await idsAt("/management-keys?include_invalid=true")).includes(id),
    ]).toEqual([false, true]);
  });

  test("management key active | expiry time passes | expired | 401", async () => {
    const { id, secret } = await managed({
      expires_at: new Date(clock.nowMs() + dayMs).toISOString(),
    });
    expect(await balance(secret)).toBe(200);
    clock.advance(dayMs);
    expect(await balance(secret)).toBe(401);
    expect(await idsAt("/management-keys")).not.toContain(id);
    const listed = listAt(await json("GET", "/management-keys?include_invalid=true"), "data");
    expect(listed.find((key) => at(key, "id") === id)).toMatchObject({
      status: "expired",
      revoked_at: null,
    });
  });

  test("an LLM key that has expired returns 401", async () => {
    const answer = await json("POST", "/keys", {
      name: "k",
      expires_at: new Date(clock.nowMs() + dayMs).toISOString(),
    });
    expect(await use(textAt(answer, "key"))).toBe(200);
    clock.advance(dayMs);
    expect(await use(textAt(answer, "key"))).toBe(401);
  });

  test("BYOK kind byok | donate with explicit consent | donated, and back by withdrawing", async () => {
    const id = await byok("sk-0123456789abcdef-one");
    expect(await kindOf(id)).toBe("byok");
    expect(
      await errorOf(await workspaces.own("POST", "/byok/donated", { key_id: id })),
    ).toMatchObject({ status: 400, param: "consent" });
    expect(await kindOf(id)).toBe("byok");
    await json("POST", "/byok/donated", { key_id: id, consent: true });
    expect(await kindOf(id)).toBe("donated");
    await json("DELETE", `/byok/donated/${id}`);
    expect(await kindOf(id)).toBe("byok");
  });

  test("BYOK kind donated | temporary pause | donated stays", async () => {
    const id = await byok("sk-0123456789abcdef-two");
    await json("POST", "/byok/donated", { key_id: id, consent: true });
    await json("PATCH", `/byok/donated/${id}`, { paused: true });
    expect(await kindOf(id)).toBe("donated");
    await json("PATCH", `/byok/donated/${id}`, { paused: false });
    expect(await kindOf(id)).toBe("donated");
  });
});

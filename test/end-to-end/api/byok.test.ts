import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Probe, ProbeOutcome } from "../../../src/byok/key-prober.ts";
import { provider } from "../../support/gateway.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

const providers = ["acme", "beta"].map((id) =>
  provider({
    id,
    name: `${id} Inference`,
    base_url: "http://127.0.0.1:1/v1",
    models: [{ id: `${id}/large`, pricing: { prompt: "1", completion: "1" } }],
  }),
);

describe.each(engines)("BYOK keys on %s", (_, freshUrl) => {
  let workspaces: TwoWorkspaces;
  let probed: ProbeOutcome = "accepted";
  const probedSecrets: string[] = [];
  beforeAll(async () => {
    const probeKey = ({ secret }: { secret: string }): Promise<Probe> => {
      probedSecrets.push(secret);
      return Promise.resolve({ outcome: probed, reason: null });
    };
    workspaces = await startTwoWorkspaces(freshUrl, { providers }, { probeKey });
  }, 240_000);
  afterAll(() => workspaces.stop());

  let count = 0;
  const freshKey = (): string => `sk-acme-${String((count += 1)).padStart(4, "0")}-secret-xyz`;
  const create = (fields: Record<string, unknown> = {}): Promise<Response> =>
    workspaces.own("POST", "/auth/byok", {
      provider_id: "acme",
      api_key: freshKey(),
      label: "mine",
      ...fields,
    });
  const make = async (fields: Record<string, unknown> = {}): Promise<string> => {
    const response = await create(fields);
    expect(response.status).toBe(200);
    return textAt(await response.json(), "id");
  };
  const change = (id: string, fields: unknown): Promise<Response> =>
    workspaces.own("PATCH", `/auth/byok/keys/${id}`, fields);
  const donate = (
    id: string,
    fields: Record<string, unknown> = { consent: true },
  ): Promise<Response> => workspaces.own("POST", "/byok/donated", { key_id: id, ...fields });
  const groups = async (): Promise<unknown[]> =>
    listAt(await (await workspaces.own("GET", "/auth/byok")).json(), "data");
  const show = async (id: string): Promise<unknown> =>
    (await groups()).flatMap((group) => listAt(group, "keys")).find((key) => at(key, "id") === id);

  test("creating a key returns its documented record with a masked preview and never the key itself", async () => {
    const apiKey = freshKey();
    const response = await create({ api_key: apiKey, source: "cli" });
    expect(response.status).toBe(200);
    const record: unknown = await response.json();
    expect(record).toEqual({
      id: expect.stringMatching(/^byok_[0-9a-f]{32}$/),
      provider_id: "acme",
      label: "mine",
      key_preview: "sk-a****xyz",
      enabled: true,
      route_coverage: "all",
      kind: "byok",
      source: "cli",
      status: "active",
      status_reason: null,
      quota: null,
      donation: null,
      created_at: iso,
      updated_at: null,
      last_used_at: null,
    });
    expect(await show(textAt(record, "id"))).toEqual(record);
    expect(JSON.stringify([record, await groups()])).not.toContain(apiKey);
  });

  test("keys are grouped by provider, in order of creation", async () => {
    const made = [
      await make({ provider_id: "beta" }),
      await make(),
      await make({ provider_id: "BETA" }),
    ];
    const listed = await groups();
    expect(listed.map((group) => [at(group, "provider_id"), at(group, "name")])).toEqual([
      ["acme", "acme Inference"],
      ["beta", "beta Inference"],
    ]);
    expect(listAt(listed[1], "keys").map((key) => at(key, "id"))).toEqual([made[0], made[2]]);
  });

  test("source defaults to api and label to the provider's name", async () => {
    expect(await show(await make({ label: undefined }))).toMatchObject({
      source: "api",
      label: "acme Inference",
    });
    expect(await show(await make({ source: "dashboard" }))).toMatchObject({ source: "dashboard" });
    expect(await show(await make({ label: null, enabled: null, quota: null }))).toMatchObject({
      label: "acme Inference",
      enabled: true,
      quota: null,
    });
  });

  test("a key of 8 characters is accepted, and shown masked", async () => {
    expect(await show(await make({ api_key: "sk-12345" }))).toMatchObject({
      key_preview: "sk-1****345",
    });
  });

  test.each([
    [{ source: "web" }, "source", "source must be cli, dashboard or api"],
    [{ source: null }, "source", "source must be cli, dashboard or api"],
    [{ provider_id: undefined }, "provider_id", "provider_id: is required"],
    [{ provider_id: "nobody" }, "provider_id", "no provider"],
    [{ api_key: undefined }, "api_key", "api_key: is required"],
    [{ api_key: "7-chars" }, "api_key", "too short"],
    [{ api_key: "sk-with a space in it" }, "api_key", "printable ASCII"],
    [{ api_key: "sk-with-a-line\r\nx-evil: 1" }, "api_key", "printable ASCII"],
    [{ api_key: "sk-ünïcode-secret-key" }, "api_key", "printable ASCII"],
    [{ label: 7 }, "label", "label"],
    [{ label: "zero \0" }, "label", "zero byte"],
    [{ enabled: "yes" }, "enabled", "enabled"],
    [{ quota: { limit: -1 } }, "quota.limit", "quota.limit"],
    [{ quota: { limit: 1, reset: "hourly" } }, "quota.reset", "quota.reset"],
    [{ base_url: "http://169.254.169.254/" }, "base_url", "the provider's own address"],
  ])("creating a key with %j returns 400", async (fields, param, message) => {
    const before = (await groups()).flatMap((group) => listAt(group, "keys")).length;
    const error = await errorOf(await create(fields));
    expect(error).toMatchObject({
      status: 400,
      code: "bad_request",
      param,
      type: "invalid_request_error",
    });
    expect(error.message).toContain(message);
    expect((await groups()).flatMap((group) => listAt(group, "keys")).length).toBe(before);
  });

  test("the same key twice at one provider returns 409, but is accepted at another provider", async () => {
    const apiKey = freshKey();
    const id = await make({ api_key: apiKey });
    const error = await errorOf(await create({ api_key: apiKey }));
    expect(error).toMatchObject({
      status: 409,
      code: "conflict",
      param: "api_key",
      type: "conflict_error",
    });
    expect(error.message).toContain(id);
    await make({ api_key: apiKey, provider_id: "beta" });
    const both = await Promise.all(
      ["one", "two"].map((label) => create({ api_key: `${apiKey}-parallel-xyz`, label })),
    );
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(await errorOf(await change(await make(), { api_key: apiKey }))).toMatchObject({
      status: 409,
      param: "api_key",
    });
    expect((await change(id, { api_key: apiKey })).status).toBe(200);
  });

  test("fields can be changed one at a time, and a rotation keeps the id, source and donation", async () => {
    const id = await make({ source: "cli" });
    expect(await (await change(id, { label: "other", enabled: false })).json()).toMatchObject({
      id,
      label: "other",
      enabled: false,
      status: "disabled",
      updated_at: iso,
    });
    expect(
      await (await change(id, { quota: { limit: 2.5, reset: "weekly" } })).json(),
    ).toMatchObject({ enabled: false, quota: { limit: 2.5, used: 0, reset: "weekly" } });
    expect(await (await change(id, { quota: { limit: 1 }, enabled: true })).json()).toMatchObject({
      quota: { limit: 1, used: 0, reset: null },
    });
    expect(await (await change(id, { quota: null })).json()).toMatchObject({
      quota: null,
      label: "other",
    });
    expect((await donate(id)).status).toBe(200);
    expect(await (await change(id, { api_key: "sk-new-and-longer-abc" })).json()).toMatchObject({
      id,
      key_preview: "sk-n****abc",
      kind: "donated",
      source: "cli",
      label: "other",
    });
  });

  test.each([
    [{ source: "cli" }, "source"],
    [{ provider_id: "beta" }, "provider_id"],
    [{ kind: "donated" }, "kind"],
    [{ api_key: "x" }, "api_key"],
    [{ base_url: "http://10.0.0.1" }, "base_url"],
    [{ quota: 7 }, "quota"],
  ])("changing a key to %j returns 400", async (fields, param) => {
    expect(await errorOf(await change(await make(), fields))).toMatchObject({
      status: 400,
      code: "bad_request",
      param,
    });
  });

  test("deleting a key removes it and its donation, from the database too", async () => {
    const id = await make();
    await donate(id);
    const response = await workspaces.own("DELETE", `/auth/byok/keys/${id}`);
    expect(await response.json()).toEqual({ deleted: true, id });
    expect(await show(id)).toBeUndefined();
    expect((await workspaces.own("DELETE", `/auth/byok/keys/${id}`)).status).toBe(404);
    const { database } = workspaces.gateway().app.storage;
    expect(
      await database.selectFrom("provider_keys").select("id").where("id", "=", id).execute(),
    ).toEqual([]);
    expect(workspaces.gateway().app.catalog().providers.has("acme")).toBe(true);
  });

  test("donating a key requires consent: true", async () => {
    const id = await make();
    for (const consent of [undefined, false, null, "true", 1]) {
      expect(await errorOf(await donate(id, { consent }))).toMatchObject({
        status: 400,
        param: "consent",
      });
    }
    expect(
      await errorOf(await workspaces.own("POST", "/byok/donated", { consent: true })),
    ).toMatchObject({ status: 400, param: "key_id" });
    expect(await errorOf(await donate(id, { consent: true, daily_limit: -1 }))).toMatchObject({
      status: 400,
      param: "daily_limit",
    });
    expect(await show(id)).toMatchObject({ kind: "byok", donation: null });
  });

  test("a key can be donated, paused, resumed, limited and withdrawn", async () => {
    const id = await make();
    const byDonation = (method: string, body?: unknown): Promise<Response> =>
      workspaces.own(method, `/byok/donated/${id}`, body);
    expect(await errorOf(await byDonation("DELETE"))).toMatchObject({
      status: 409,
      code: "conflict",
    });
    expect(await errorOf(await byDonation("PATCH", { paused: true }))).toMatchObject({
      status: 409,
      code: "conflict",
    });
    expect(await (await donate(id, { consent: true, daily_limit: 5 })).json()).toMatchObject({
      id,
      kind: "donated",
      status: "active",
      donation: {
        donated_at: iso,
        daily_limit: 5,
        used_today: 0,
        paused: false,
        pause_reason: null,
      },
    });
    expect(await errorOf(await donate(id))).toMatchObject({
      status: 409,
      code: "conflict",
      param: "key_id",
    });
    expect(await (await byDonation("PATCH", { paused: true })).json()).toMatchObject({
      kind: "donated",
      status: "paused",
      donation: { paused: true, pause_reason: "owner", daily_limit: 5 },
    });
    expect(
      await (await byDonation("PATCH", { paused: false, daily_limit: null })).json(),
    ).toMatchObject({
      kind: "donated",
      status: "active",
      donation: { paused: false, daily_limit: null },
    });
    expect(await (await byDonation("DELETE")).json()).toMatchObject({
      id,
      kind: "byok",
      donation: null,
    });
    expect(await errorOf(await byDonation("DELETE"))).toMatchObject({ status: 409 });
    expect(probedSecrets).toEqual([]);
  });

  test("a donated key that its provider refused is tested before it serves others again", async () => {
    const apiKey = freshKey();
    const id = await make({ api_key: apiKey });
    await donate(id);
    const refuse = async (): Promise<void> => {
      const { database } = workspaces.gateway().app.storage;
      await database
        .updateTable("provider_keys")
        .set({ pause_reason: "credential" })
        .where("id", "=", id)
        .execute();
      await workspaces.restart();
    };
    await refuse();
    expect(await show(id)).toMatchObject({
      kind: "donated",
      status: "paused",
      donation: { pause_reason: "credential" },
    });
    probed = "refused";
    expect(
      await errorOf(await workspaces.own("PATCH", `/byok/donated/${id}`, { paused: false })),
    ).toMatchObject({ status: 409, param: "paused" });
    expect(await show(id)).toMatchObject({ status: "paused" });
    probed = "accepted";
    expect((await workspaces.own("PATCH", `/byok/donated/${id}`, { paused: false })).status).toBe(
      200,
    );
    expect(await show(id)).toMatchObject({
      kind: "donated",
      status: "active",
      donation: { paused: false },
    });
    expect(probedSecrets).toEqual([apiKey, apiKey]);
    await refuse();
    probed = "refused";
    expect(await (await change(id, { api_key: "sk-still-not-accepted" })).json()).toMatchObject({
      kind: "donated",
      status: "paused",
    });
    probed = "accepted";
    expect(await (await change(id, { api_key: "sk-accepted-at-last" })).json()).toMatchObject({
      kind: "donated",
      status: "active",
    });
    expect(probedSecrets.slice(2)).toEqual(["sk-still-not-accepted", "sk-accepted-at-last"]);
  });

  test("another workspace cannot see or change a key", async () => {
    const apiKey = freshKey();
    const id = await make({ api_key: apiKey });
    await donate(id);
    const before = await show(id);
    expect(await (await workspaces.stranger("GET", "/auth/byok")).json()).toEqual({
      object: "list",
      data: [],
    });
    const asked: [string, string, unknown?][] = [
      ["PATCH", `/auth/byok/keys/${id}`, { label: "stolen" }],
      ["DELETE", `/auth/byok/keys/${id}`],
      ["POST", "/byok/donated", { key_id: id, consent: true }],
      ["PATCH", `/byok/donated/${id}`, { paused: true }],
      ["DELETE", `/byok/donated/${id}`],
    ];
    for (const [method, path, body] of asked) {
      expect(await errorOf(await workspaces.stranger(method, path, body))).toMatchObject({
        status: 404,
        code: "not_found",
      });
    }
    expect(await show(id)).toEqual(before);
    const theirs = await workspaces.stranger("POST", "/auth/byok", {
      provider_id: "acme",
      api_key: apiKey,
    });
    expect(theirs.status).toBe(200);
    expect(
      (await workspaces.stranger("DELETE", `/auth/byok/keys/${textAt(await theirs.json(), "id")}`))
        .status,
    ).toBe(200);
  });

  test("keys, quotas and donations survive a restart", async () => {
    const id = await make({ quota: { limit: 3, reset: "daily" }, enabled: false });
    await donate(id, { consent: true, daily_limit: 0.5 });
    const before = await groups();
    await workspaces.restart();
    expect(await groups()).toEqual(before);
  });

  test("no key appears in the database or the log in plain or encoded form", async () => {
    const apiKey = freshKey();
    const id = await make({ api_key: apiKey });
    await change(id, { api_key: `${apiKey}-rotated` });
    const { database } = workspaces.gateway().app.storage;
    const rows = JSON.stringify([
      await database.selectFrom("provider_keys").selectAll().execute(),
      await database.selectFrom("workspace_data_keys").selectAll().execute(),
    ]);
    for (const encoding of ["utf8", "base64", "base64url", "hex"] as const) {
      const text = Buffer.from(apiKey).toString(encoding).replace(/=+$/, "").slice(0, -2);
      expect(rows).not.toContain(text);
      expect(workspaces.gateway().logLines.join("\n")).not.toContain(text);
    }
    expect(rows).toContain(id);
  });
});

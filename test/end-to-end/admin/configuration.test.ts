import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme } from "../../support/gateway.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { json } from "../../support/upstream/steps.ts";
import { at, listAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { engines } from "../api/two-workspaces.ts";
import { startOperatorScene, type OperatorScene } from "./operator-scene.ts";

const secret = "sk-of-the-new-provider";

describe.each(engines)("providers that operators configure in the page, on %s", (_, freshUrl) => {
  let scene: OperatorScene;
  let upstream: FaultUpstream;
  let directory: string;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    directory = mkdtempSync(join(tmpdir(), "configuration-"));
    scene = await startOperatorScene((await freshUrl()) ?? `sqlite:${join(directory, "test.db")}`, {
      providers: [acme("http://127.0.0.1:9/v1")],
    });
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    upstream.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const value = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
    name: "Nova",
    base_url: upstream.baseUrl,
    dialect: "openai-chat",
    api_key: secret,
    models: [{ id: "nova/one", pricing: { prompt: "1", completion: "2" } }],
    ...changes,
  });
  const put = (id: string, of: Record<string, unknown>): Promise<Response> =>
    scene.owner.api("POST", "/admin/configuration", { section: "providers", id, value: of });
  const entry = async (id: string): Promise<unknown> =>
    listAt(await scene.owner.json("GET", "/admin/configuration"), "data").find(
      (each) => at(each, "id") === id,
    );
  const ask = (model: string): Promise<Response> =>
    scene.gateway().post("/chat/completions", {
      model,
      messages: [{ role: "user", content: "Hello" }],
    });

  test("serve at once, without a restart, at their price; the secret is nowhere", async () => {
    expect((await ask("nova/one")).status).toBe(404);
    const made: unknown = await (await put("nova", value())).json();
    expect(made).toMatchObject({
      object: "configuration_entry",
      source: "page",
      in_force: true,
      problem: null,
      value: { api_key: "***", base_url: upstream.baseUrl },
      change: { models_added: ["nova/one"], models_removed: [], prices_changed: [] },
    });
    const answer = await ask("nova/one");
    expect([answer.status, at(await answer.json(), "usage.cost")]).toEqual([200, 0.000025]);
    expect(upstream.requests.at(-1)?.headers.get("authorization")).toBe(`Bearer ${secret}`);
    const shown = JSON.stringify([await scene.owner.json("GET", "/admin/configuration"), made]);
    expect(shown).not.toContain(secret);
    expect(scene.gateway().logLines.join("\n")).not.toContain(secret);
  });

  test("are changed with their secret kept, exported with variables, and deleted", async () => {
    const changed: unknown = await (
      await put(
        "nova",
        value({
          api_key: "***",
          models: [{ id: "nova/one", pricing: { prompt: "10", completion: "20" } }],
        }),
      )
    ).json();
    expect(at(changed, "change.prices_changed")).toHaveLength(1);
    expect(at(await (await ask("nova/one")).json(), "usage.cost")).toBe(0.00025);
    expect(upstream.requests.at(-1)?.headers.get("authorization")).toBe(`Bearer ${secret}`);
    const yaml = await (await scene.owner.api("GET", "/admin/configuration/export")).text();
    expect(yaml).toContain("- id: nova");
    expect(yaml).toContain("api_key: ${NOVA_API_KEY}");
    expect(yaml).not.toContain(secret);
    const gone = await scene.owner.api("DELETE", "/admin/configuration/providers/nova");
    expect(await gone.json()).toMatchObject({
      deleted: true,
      id: "nova",
      change: { models_removed: ["nova/one"] },
    });
    expect((await ask("nova/one")).status).toBe(404);
    expect(await entry("nova")).toBeUndefined();
  });

  test("send a kept secret to no other host than the one that it was given for", async () => {
    await put("nova", value({ headers: { "x-team": "secret-team" } }));
    const moved = { base_url: "http://127.0.0.1:9/v1" };
    const kept = { api_key: "***", headers: { "x-team": "***" } };
    const test = (of: Record<string, unknown>): Promise<Response> =>
      scene.owner.api("POST", "/admin/configuration/test", { id: "nova", value: of });
    const { base_url: _, ...without } = value(kept);
    // A proxy reads what an unencrypted connection carries.
    const proxied = value({ ...kept, proxy: "http://127.0.0.1:9" });
    for (const send of [(of: Record<string, unknown>) => put("nova", of), test]) {
      for (const of of [value({ ...kept, ...moved }), { ...without, ...moved }, proxied])
        expect(await errorOf(await send(of))).toMatchObject({
          status: 400,
          param: "value.api_key",
        });
      const anew = value({ ...kept, ...moved, api_key: "sk-anew" });
      expect(await errorOf(await send(anew))).toMatchObject({ param: "value.headers" });
    }
    expect(await entry("nova")).toMatchObject({ value: { base_url: upstream.baseUrl } });
    const path = `${upstream.baseUrl}/more`;
    expect((await put("nova", value({ ...kept, base_url: path }))).status).toBe(200);
    const anew = value({ ...moved, api_key: "sk-anew", headers: { "x-team": "other" } });
    expect((await put("nova", anew)).status).toBe(200);
    await scene.owner.api("DELETE", "/admin/configuration/providers/nova");
  });

  test("show no password of a proxy, also without a scheme", async () => {
    await put("nova", value({ proxy: "me:hunter2@127.0.0.1:3128" }));
    expect(await entry("nova")).toMatchObject({ value: { proxy: "***" } });
    const yaml = await (await scene.owner.api("GET", "/admin/configuration/export")).text();
    expect(yaml).toContain("proxy: ${NOVA_PROXY}");
    await scene.owner.api("DELETE", "/admin/configuration/providers/nova");
  });

  test("are refused by the field, and where the file has the id", async () => {
    const refused = async (id: string, of: Record<string, unknown>) => errorOf(await put(id, of));
    expect(await refused("nova", value({ base_url: "ftp://x" }))).toMatchObject({
      status: 400,
      param: "value.base_url",
    });
    expect(await refused("nova", value({ prices: {} }))).toMatchObject({
      status: 400,
      param: "value.prices",
    });
    expect(await refused("nova", value({ api_key: "${HOME}" }))).toMatchObject({ status: 400 });
    for (const host of ["169.254.169.254", "[::ffff:169.254.169.254]", "metadata.google.internal."])
      expect(await refused("nova", value({ base_url: `http://${host}/latest` }))).toMatchObject({
        status: 400,
        param: "value.base_url",
      });
    expect(await refused("acme", value())).toMatchObject({ status: 409, param: "id" });
    expect(await entry("acme")).toMatchObject({ source: "file", value: { api_key: "***" } });
    const ofFile = await scene.owner.api("DELETE", "/admin/configuration/providers/acme");
    expect(ofFile.status).toBe(409);
    expect(await entry("nova")).toBeUndefined();
  });

  test("are tested before they are stored, with the reason of a failure", async () => {
    const tested = async (of: Record<string, unknown>): Promise<unknown> =>
      (
        await scene.owner.api("POST", "/admin/configuration/test", { id: "nova", value: of })
      ).json();
    upstream.script((request) =>
      request.method === "GET"
        ? json({ object: "list", data: [{ id: "one" }, { id: "two" }] })
        : json(chatError("Incorrect API key provided."), { status: 401 }),
    );
    expect(await tested(value())).toMatchObject({
      object: "provider_test",
      outcome: "failed",
      reason: expect.stringContaining("Incorrect API key provided."),
    });
    expect(await tested(value({ models: [] }))).toMatchObject({
      outcome: "skipped",
      models: ["one", "two"],
    });
    expect(await entry("nova")).toBeUndefined();
  });

  test("routers are configured too, and people who are no operators reach none of it", async () => {
    const router = { members: ["acme/large"] };
    const made = await scene.owner.api("POST", "/admin/configuration", {
      section: "routers",
      id: "service/auto",
      value: router,
    });
    expect([made.status, at(await made.json(), "in_force")]).toEqual([200, true]);
    const gone = await scene.owner.api("DELETE", "/admin/configuration/routers/service%2Fauto");
    expect(gone.status).toBe(200);
    const broken = await scene.owner.api("DELETE", "/admin/configuration/providers/%25zz");
    expect(broken.status).toBe(404);
    await put("nova", value());
    const alias = await scene.owner.api("POST", "/admin/configuration", {
      section: "aliases",
      id: "fast",
      value: { target: "nova/one" },
    });
    expect(alias.status).toBe(200);
    upstream.script(healthyChat);
    expect((await ask("fast")).status).toBe(200);
    await scene.restart();
    expect((await ask("fast")).status).toBe(200);
    const { browser } = await scene.person("stranger");
    expect((await browser.api("GET", "/admin/configuration")).status).toBe(403);
  });
});

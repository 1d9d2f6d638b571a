import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider, testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { openaiChatWire } from "../../support/upstream/openai-chat-wire.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { json } from "../../support/upstream/steps.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import {
  engines,
  startTwoWorkspaces,
  strangersKey,
  type TwoWorkspaces,
} from "../api/two-workspaces.ts";

const free = (id: string) => ({
  id,
  context_length: 100_000,
  pricing: { prompt: "0", completion: "0" },
});

describe.each(engines)("aliases of a workspace on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let workspaces: TwoWorkspaces;
  let strangersLlmKey: string;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    upstream.script(json(openaiChatWire.whole));
    workspaces = await startTwoWorkspaces(freshUrl, {
      providers: [
        provider({
          id: "acme",
          dialect: "openai-chat",
          base_url: upstream.baseUrl,
          api_key: "k",
          models: ["acme/small", "acme/a", "acme/b"].map(free),
        }),
      ],
      aliases: { house: "acme/small", shared: "acme/a" },
      plans: { enterprise: { perMinute: 1_000_000 } },
    });
    const made = await workspaces.stranger("POST", "/keys", { name: "theirs" });
    strangersLlmKey = textAt(await made.json(), "key");
  }, 240_000);
  afterAll(async () => {
    await workspaces.stop();
    upstream.stop();
  });

  const create = async (name: string, target: unknown): Promise<void> => {
    const made = await workspaces.own("POST", "/aliases", { name, target });
    expect([name, made.status]).toEqual([name, 200]);
  };

  /** Returns the status of a chat, and the model that served it. */
  const served = async (
    model: string,
    { key = testLlmKey, ...body }: { key?: string; [field: string]: unknown } = {},
  ): Promise<[status: number, model: string | null]> => {
    const response = await workspaces.as(key)("POST", "/chat/completions", {
      model,
      messages: [{ role: "user", content: "Hi" }],
      ...body,
    });
    await response.text();
    return [response.status, response.headers.get("x-service-model")];
  };

  test("are created, listed, shown, changed and deleted", async () => {
    const body = { name: "Draft", target: ["acme/a", "acme/b"], description: "For drafts" };
    const created: unknown = await (await workspaces.own("POST", "/aliases", body)).json();
    expect(created).toEqual({
      object: "alias",
      name: "draft",
      target: ["acme/a", "acme/b"],
      models: ["acme/a", "acme/b"],
      description: "For drafts",
      created_at: expect.stringMatching(/Z$/),
      updated_at: expect.stringMatching(/Z$/),
    });
    expect(await (await workspaces.own("GET", "/aliases/DRAFT")).json()).toEqual(created);
    await create("later", "acme/b");
    const list: unknown = await (await workspaces.own("GET", "/aliases?limit=1")).json();
    expect(list).toMatchObject({ object: "list", data: [{ name: "later" }], has_more: true });
    const changes = { target: "acme/small", description: null };
    const changed = await workspaces.own("PATCH", "/aliases/draft", changes);
    expect(await changed.json()).toMatchObject({ ...changes, models: ["acme/small"] });
    expect(await served("draft")).toEqual([200, "acme/small"]);
    expect(await (await workspaces.own("DELETE", "/aliases/draft")).json()).toEqual({
      deleted: true,
      name: "draft",
    });
    expect((await served("draft"))[0]).toBe(404);
    const entries = listAt(await (await workspaces.own("GET", "/security/audit")).json(), "data");
    expect(entries).toContainEqual(
      expect.objectContaining({ action: "POST /aliases", target: "draft", outcome: "done" }),
    );
  });

  test.each<[what: string, body: unknown, status: number, param: string]>([
    ["a name with an owner", { name: "a/b", target: "acme/a" }, 400, "name"],
    ["no name", { target: "acme/a" }, 400, "name"],
    ["no target", { name: "n" }, 400, "target"],
    ["a model that does not exist", { name: "n", target: "acme/none" }, 400, "target"],
    [
      "one that does not exist among others",
      { name: "n", target: ["acme/a", "x/y"] },
      400,
      "target",
    ],
    ["the name of the operator's", { name: "n", target: "house" }, 400, "target"],
    ["a preset", { name: "n", target: "@preset/p" }, 400, "target"],
    ["an empty list", { name: "n", target: [] }, 400, "target"],
    ["an unknown field", { name: "n", target: "acme/a", weigth: 1 }, 400, "weigth"],
  ])("are refused with %s", async (_what, body, status, param) => {
    const refused = await errorOf(await workspaces.own("POST", "/aliases", body));
    expect([refused.status, refused.param]).toEqual([status, param]);
  });

  test("say what is wrong within a target, and refuse a name that is taken", async () => {
    const target = [{ model: "acme/a", weight: 0 }];
    const refused = await errorOf(await workspaces.own("POST", "/aliases", { name: "n", target }));
    expect([refused.status, String(refused.param)]).toEqual([
      400,
      expect.stringMatching(/^target/),
    ]);
    await create("taken", "acme/a");
    const again = await workspaces.own("POST", "/aliases", { name: "Taken", target: "acme/b" });
    expect(await errorOf(again)).toMatchObject({ status: 409, param: "name" });
    const changed = await workspaces.own("PATCH", "/aliases/taken", { target: "acme/none" });
    expect(await errorOf(changed)).toMatchObject({ status: 400, param: "target" });
    const renamed = await workspaces.own("PATCH", "/aliases/taken", { name: "other" });
    expect(await errorOf(renamed)).toMatchObject({ status: 400, param: "name" });
  });

  test("are honoured by every door, and records keep the name", async () => {
    await create("quick", "acme/b");
    const { origin } = workspaces.gateway();
    const messages = [{ role: "user", content: "Hi" }];
    for (const [path, body] of [
      ["/v1/chat/completions", { model: "QUICK", messages }],
      ["/v1/chat/completions", { model: "quick:floor", messages }],
      ["/v1/messages", { model: "quick", max_tokens: 9, messages }],
      ["/v1/responses", { model: "quick", input: "Hi" }],
      ["/v1/completions", { model: "quick", prompt: "Hi" }],
      ["/v1beta/models/quick:generateContent", { contents: [{ parts: [{ text: "Hi" }] }] }],
      ["/api/chat", { model: "quick:latest", messages, stream: false }],
      ["/openai/deployments/quick/chat/completions?api-version=2024-10-21", { messages }],
    ] as const) {
      const response = await fetch(origin + path, {
        method: "POST",
        headers: { authorization: `Bearer ${testLlmKey}` },
        body: JSON.stringify(body),
      });
      const text = await response.text();
      expect([path, response.status, response.headers.get("x-service-model")]).toEqual([
        path,
        200,
        "acme/b",
      ]);
      if (path !== "/v1/chat/completions") continue;
      const id = textAt(JSON.parse(text), "id");
      const record: unknown = await (await workspaces.gateway().get(`/generation/${id}`)).json();
      expect(at(record, "data.requested_model")).toBe("quick");
    }
    const preset = { slug: "by-name", name: "By name", config: { model: "quick" } };
    await workspaces.own("POST", "/presets", preset);
    expect(await served("@preset/by-name")).toEqual([200, "acme/b"]);
  });

  test("choose by weight and condition, and fall back", async () => {
    await create("none-of-it", [{ model: "acme/a", weight: 1 }]);
    await create("by-tag", [{ model: "acme/b", when: { tag: "eu" } }, { model: "acme/a" }]);
    expect(await served("none-of-it")).toEqual([200, "acme/a"]);
    expect(await served("by-tag")).toEqual([200, "acme/a"]);
    expect(await served("by-tag", { metadata: { tags: ["eu"] } })).toEqual([200, "acme/b"]);
    await create("split", [
      { model: "acme/a", weight: 1 },
      { model: "acme/b", weight: 1 },
    ]);
    for (let talk = 0; talk < 8; talk += 1) {
      const body = { session_id: `talk ${talk}` };
      expect(await served("split", body)).toEqual(await served("split", body));
    }
  });

  test("take precedence over the operator's names, and mean nothing elsewhere", async () => {
    expect(await served("shared")).toEqual([200, "acme/a"]);
    await create("shared", "acme/b");
    await create("secret-plan", "acme/b");
    expect(await served("shared")).toEqual([200, "acme/b"]);
    expect(await served("shared", { key: strangersLlmKey })).toEqual([200, "acme/a"]);
    expect((await served("secret-plan", { key: strangersLlmKey }))[0]).toBe(404);
    for (const method of ["GET", "PATCH", "DELETE"])
      expect(
        (
          await workspaces.stranger(
            method,
            "/aliases/secret-plan",
            method === "PATCH" ? {} : undefined,
          )
        ).status,
      ).toBe(404);
    expect(await (await workspaces.stranger("GET", "/aliases")).json()).toMatchObject({ data: [] });
    await workspaces.own("DELETE", "/aliases/shared");
    expect(await served("shared")).toEqual([200, "acme/a"]);
  });

  test("are listed beside models, in every form, for their workspace alone", async () => {
    await create("listed", ["acme/a", "acme/b"]);
    const { origin } = workspaces.gateway();
    const ask = async (path: string, secret?: string, headers: Record<string, string> = {}) => {
      const authorization = secret === undefined ? {} : { authorization: `Bearer ${secret}` };
      return (await fetch(origin + path, { headers: { ...headers, ...authorization } })).json();
    };
    const models = listAt(await ask("/v1/models", testLlmKey), "data");
    expect(models.find((model) => at(model, "id") === "listed")).toMatchObject({
      object: "model",
      alias_of: ["acme/a", "acme/b"],
    });
    expect(await ask("/v1/models/listed", testLlmKey)).toMatchObject({
      id: "listed",
      alias_of: ["acme/a", "acme/b"],
    });
    for (const [path, headers] of [
      ["/v1/models", { "anthropic-version": "2023-06-01" }],
      ["/v1/models", { "x-goog-api-client": "x" }],
      ["/api/tags", {}],
    ] as [string, Record<string, string>][]) {
      expect(JSON.stringify(await ask(path, testLlmKey, headers))).toContain("listed");
      expect(JSON.stringify(await ask(path, strangersLlmKey, headers))).not.toContain("listed");
    }
    const anyone = await ask("/v1/models");
    expect(JSON.stringify(anyone)).not.toContain("listed");
    expect(await ask("/v1/models/count")).toMatchObject({ count: listAt(anyone, "data").length });
    expect(JSON.stringify(await ask("/v1/models", strangersLlmKey))).not.toContain("listed");
  });

  test("give a key no more than its allowed_models", async () => {
    await create("both", ["acme/a", "acme/b"]);
    const fields = { name: "narrow", allowed_models: ["acme/b"] };
    const made: unknown = await (await workspaces.own("POST", "/keys", fields)).json();
    const key = textAt(made, "key");
    expect(await served("both", { key })).toEqual([200, "acme/b"]);
    await workspaces.own("PATCH", "/aliases/both", { target: "acme/a" });
    expect((await served("both", { key }))[0]).toBe(403);
  });

  test("are kept over a restart, and need the scopes of presets", async () => {
    await create("kept", "acme/b");
    await workspaces.restart();
    expect(await served("kept")).toEqual([200, "acme/b"]);
    expect((await served("kept", { key: strangersLlmKey }))[0]).toBe(404);
    const fields = { name: "reader", scopes: ["read:presets"] };
    const made: unknown = await (
      await workspaces.as(testManagementKey)("POST", "/management-keys", fields)
    ).json();
    const reader = workspaces.as(textAt(made, "key"));
    expect((await reader("GET", "/aliases/kept")).status).toBe(200);
    expect((await reader("DELETE", "/aliases/kept")).status).toBe(403);
    expect((await workspaces.as(testLlmKey)("GET", "/aliases")).status).toBe(401);
    expect((await workspaces.as(strangersKey)("GET", "/aliases/kept")).status).toBe(404);
  });
});

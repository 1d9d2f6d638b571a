import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { middayClock } from "../../support/midday-clock.ts";
import { seedStorage } from "../api/seed-storage.ts";
import { engines } from "../api/two-workspaces.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { callTool } from "./mcp-client.ts";

let gateway: TestGateway;
describe.each(engines)("tools on %s", (_engine, freshUrl) => {
  beforeAll(async () => {
    const { settings } = await seedStorage({ workspaces: [] }, await freshUrl());
    gateway = await startGateway({ ...settings, sandbox: true }, { clock: middayClock() });
    await asked("POST", "/presets", {
      slug: "careful",
      name: "Careful",
      config: { temperature: 0 },
    });
    for (const enabled of [true, false]) {
      await asked("POST", "/auth/byok", {
        provider_id: "openai",
        api_key: `sk-own-0123456789-${enabled}`,
        enabled,
      });
    }
    await gateway.post("/chat/completions", {
      model: textAt(await asked("GET", "/models/recommend?task=chat"), "data.0.model"),
      messages,
    });
  });
  afterAll(() => gateway.stop());

  const messages = [{ role: "user", content: "Hello" }];

  /** The JSON answer of a REST endpoint. */
  async function asked(method: string, path: string, body?: unknown): Promise<unknown> {
    const isCatalog = path.startsWith("/models");
    const response = await fetch(gateway.baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${isCatalog ? testLlmKey : testManagementKey}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return await response.json();
  }

  async function called(name: string, given: Record<string, unknown> = {}): Promise<unknown> {
    const outcome = await callTool(`${gateway.origin}/mcp`, {
      name,
      given,
      secret: testManagementKey,
    });
    if ("result" in outcome) return outcome.result;
    throw new Error(`${name} was refused: ${JSON.stringify(outcome)}`);
  }

  const dropped = (value: unknown, ...fields: string[]): unknown =>
    Object.fromEntries(Object.entries(Object(value)).filter(([name]) => !fields.includes(name)));

  /** Moments at which an answer was made: two answers have two of them. */
  const withoutMoments = (value: unknown): unknown =>
    JSON.parse(
      JSON.stringify(value)
        .replaceAll(/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, '"then"')
        .replaceAll(/"(uptime_seconds|age_hours)":[\d.]+/g, '"$1":0'),
    );

  describe("a result equals the response of the REST endpoint", () => {
    test.each<
      [name: string, given: Record<string, unknown>, path: string, added?: readonly string[]]
    >([
      ["list_models", { limit: 1000 }, "/models?presets=0", ["total"]],
      [
        "list_models",
        { limit: 1000, include_unavailable: true, capability: "vision" },
        "/models?presets=0&all=1&capability=vision",
        ["total"],
      ],
      ["recommend_model", { task: "coding", limit: 3 }, "/models/recommend?task=coding&limit=3"],
      [
        "recommend_model",
        { task: "reasoning", max_input_per_1m: 3, min_context: 1000 },
        "/models/recommend?task=reasoning&max_input_per_1m=3&min_context=1000",
      ],
      ["get_usage", {}, "/analytics/usage", ["models", "totals"]],
      ["list_byok_keys", {}, "/auth/byok"],
      ["get_credits", {}, "/credits"],
      ["list_keys", {}, "/keys"],
      ["list_keys", { include_disabled: true }, "/keys?include_disabled=true"],
      ["list_presets", {}, "/presets"],
      ["list_aliases", {}, "/aliases"],
      ["get_system_status", {}, "/health"],
      ["admin_overview", {}, "/admin/overview"],
      ["admin_usage_summary", { days: 3 }, "/admin/usage?days=3"],
      ["admin_north_star", {}, "/admin/north-star"],
      ["admin_list_users", { limit: 2 }, "/admin/users?limit=2"],
      ["admin_errors_overview", {}, "/admin/errors"],
      ["admin_smoke_test", {}, "/admin/smoke-tests"],
      ["admin_upstream_health", {}, "/admin/upstreams"],
    ])("%s %j and GET %s", async (name, given, path, added = []) => {
      const [result, answer] = [await called(name, given), await asked("GET", path)];
      expect(withoutMoments(dropped(result, ...added))).toEqual(withoutMoments(answer));
    });
  });

  test("admin_request returns the endpoint's response with its status", async () => {
    expect(
      await called("admin_request", {
        method: "GET",
        path: "/api/v1/admin/users",
        query: { limit: 1 },
      }),
    ).toEqual({ status: 200, body: await asked("GET", "/admin/users?limit=1") });
  });

  test("admin_list_endpoints lists what admin_request can call, with fields when few match", async () => {
    const all = listAt(await called("admin_list_endpoints"), "data");
    expect(all.length).toBeGreaterThan(50);
    expect(all.filter((each) => String(at(each, "path")).includes("/chat/completions"))).toEqual(
      [],
    );
    const [grant] = listAt(
      await called("admin_list_endpoints", { method: "POST", search: "grants" }),
      "data",
    );
    expect(grant).toMatchObject({
      method: "POST",
      path: "/api/v1/admin/grants",
      dangerous: true,
      operators_only: true,
    });
    expect(at(grant, "body.properties.amount")).toBeDefined();
  });

  describe("filters", () => {
    test("list_models filters by task, price and context, sorted and limited", async () => {
      const total = Number(at(await called("list_models"), "total"));
      expect(total).toBeGreaterThan(3);
      const cut = await called("list_models", { limit: 2 });
      expect([listAt(cut, "data").length, at(cut, "total")]).toEqual([2, total]);
      const contexts = listAt(await called("list_models", { sort: "context" }), "data").map(
        (model) => Number(at(model, "context_length")),
      );
      expect(contexts).toEqual(contexts.toSorted((one, other) => other - one));
      for (const model of listAt(await called("list_models", { task: "vision" }), "data"))
        expect(at(model, "capabilities")).toContain("vision");
      for (const model of listAt(await called("list_models", { free_only: true }), "data"))
        expect(at(model, "pricing.input_per_1m")).toBe(0);
    });

    test("list_byok_keys leaves out disabled keys on request", async () => {
      const keys = async (given: Record<string, unknown>) =>
        listAt(await called("list_byok_keys", given), "data")
          .flatMap((group) => listAt(group, "keys"))
          .map((key) => at(key, "enabled"));
      expect((await keys({})).sort()).toEqual([false, true]);
      expect(await keys({ enabled_only: true })).toEqual([true]);
    });
  });

  describe("tools that change something", () => {
    const outcome = (
      name: string,
      given: Record<string, unknown>,
      headers: Record<string, string> = {},
    ) => callTool(`${gateway.origin}/mcp`, { name, given, secret: testManagementKey, headers });
    const named = async (name: string): Promise<unknown[]> =>
      listAt(await asked("GET", "/keys?include_disabled=true"), "data").filter(
        (key) => at(key, "name") === name,
      );

    test("create_key creates a working key, shows its secret once and says so", async () => {
      const made = await called("create_key", {
        name: "of an agent",
        label: "ignored",
        rate_limit: 7,
      });
      expect(at(made, "notice")).toContain("do not");
      expect(at(made, "data")).toMatchObject({ name: "of an agent", rate_limit: 7 });
      const secret = textAt(made, "key");
      const self = await fetch(`${gateway.baseUrl}/auth/key`, {
        headers: { authorization: `Bearer ${secret}` },
      });
      expect(self.status).toBe(200);
      expect(JSON.stringify(await called("list_keys"))).not.toContain(secret);
      expect(at(await called("create_key", { label: "by label" }), "data.name")).toBe("by label");
    });

    test.each<[how: string, argument: string | undefined, header: string | undefined]>([
      ["by argument", "once-by-argument", undefined],
      ["by header", undefined, "once-by-header"],
    ])(
      "create_key twice with one idempotency key, %s, creates one key",
      async (name, argument, header) => {
        const given = { name, ...(argument === undefined ? {} : { idempotency_key: argument }) };
        const headers = header === undefined ? {} : { "idempotency-key": header };
        const [first, second] = [
          await outcome("create_key", given, headers),
          await outcome("create_key", given, headers),
        ];
        expect(first).toHaveProperty("result");
        expect(second).toEqual(first);
        expect(await named(name)).toHaveLength(1);
      },
    );

    test("revoke_key accepts an id or a hash, acts once, and the key is refused at once", async () => {
      for (const by of ["id", "hash"]) {
        const made = await called("create_key", { name: `revoked by ${by}` });
        const given = { key_id: textAt(made, `data.${by}`), idempotency_key: `revoke-${by}` };
        const wanted = { result: { deleted: true, id: textAt(made, "data.id") } };
        expect([await outcome("revoke_key", given), await outcome("revoke_key", given)]).toEqual([
          wanted,
          wanted,
        ]);
        const refused = await fetch(`${gateway.baseUrl}/auth/key`, {
          headers: { authorization: `Bearer ${textAt(made, "key")}` },
        });
        expect(refused.status).toBe(401);
        expect(await outcome("revoke_key", { key_id: given.key_id })).toEqual({
          refused: expect.stringContaining("There is no LLM key"),
        });
      }
    });

    test("a change by a tool is audited like a call of the REST endpoint", async () => {
      const made = await called("create_key", { name: "audited" });
      const entries = listAt(await asked("GET", "/security/audit"), "data");
      expect(
        entries.find((entry) => JSON.stringify(entry).includes(textAt(made, "data.id"))),
      ).toMatchObject({ action: "POST /keys" });
    });

    test("admin_request needs confirmation for a change and refuses endpoints outside its list", async () => {
      const change = {
        method: "POST",
        path: "/presets",
        body: { slug: "by-tool", name: "By tool", config: {} },
      };
      expect(await outcome("admin_request", change)).toEqual({
        refused: expect.stringMatching(/^confirm: must be true/),
      });
      const changed = { result: { status: 200, body: { slug: "by-tool" } } };
      expect(await outcome("admin_request", { ...change, confirm: true })).toMatchObject(changed);
      expect(await outcome("admin_request", { ...change, confirm: true })).toEqual({
        refused: expect.stringContaining("by-tool"),
      });
      for (const path of ["/chat/completions", "/mcp", "/session", "/nothing", "/admin/%zz"]) {
        expect(
          await outcome("admin_request", { method: "POST", path, confirm: true }),
        ).toHaveProperty("refused");
      }
      expect(await outcome("admin_request", { method: "GET", path: "/keys?limit=1" })).toEqual({
        refused: expect.stringContaining("query"),
      });
    });
  });
});

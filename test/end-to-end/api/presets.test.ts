import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testLlmKey } from "../../support/gateway.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Every field of the contract's PresetConfig. */
const everything = {
  model: "acme/large",
  models: ["acme/small"],
  system: "Be brief. \u0000 too",
  temperature: 0.5,
  max_tokens: 100,
  max_completion_tokens: 200,
  top_p: 0.9,
  top_k: 40,
  frequency_penalty: -2,
  presence_penalty: 2,
  repetition_penalty: 1.1,
  stop: ["END"],
  seed: 7,
  response_format: { type: "json_object" },
  tools: [{ type: "function", function: { name: "look", parameters: { type: "object" } } }],
  tool_choice: "auto",
  provider: {
    only: ["acme"],
    sort: { by: "price", partition: "none" },
    max_price: { prompt: "1" },
    zdr: true,
  },
  reasoning: { effort: "low", max_tokens: 1024, exclude: true },
  stream_options: { include_usage: true },
  require_params: ["tools"],
  min_context: 32_000,
};

describe.each(engines)("presets on %s", (_, freshUrl) => {
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl);
  }, 240_000);
  afterAll(() => workspaces.stop());

  let count = 0;
  const freshSlug = (): string => `preset-${(count += 1)}`;
  const create = (fields: unknown): Promise<Response> => workspaces.own("POST", "/presets", fields);
  const make = async (fields: Record<string, unknown> = {}): Promise<string> => {
    const slug = freshSlug();
    expect((await create({ slug, name: "p", config: {}, ...fields })).status).toBe(200);
    return slug;
  };
  const show = async (slug: string): Promise<unknown> =>
    (await workspaces.own("GET", `/presets/${slug}`)).json();
  const change = (slug: string, fields: unknown): Promise<Response> =>
    workspaces.own("PATCH", `/presets/${slug}`, fields);
  const list = async (): Promise<unknown[]> =>
    listAt(await (await workspaces.own("GET", "/presets")).json(), "data");

  test("creating a preset returns every documented field with its whole configuration", async () => {
    const slug = freshSlug();
    const response = await create({
      slug,
      name: "Everything",
      description: "all of it",
      config: everything,
    });
    expect(response.status).toBe(200);
    const record = {
      id: expect.stringMatching(/^prs_[0-9a-f]{32}$/),
      object: "preset",
      slug,
      name: "Everything",
      description: "all of it",
      config: everything,
      version: 1,
      created_at: expect.stringMatching(iso),
      updated_at: expect.stringMatching(iso),
      last_used_at: null,
    };
    const created: unknown = await response.json();
    expect(created).toEqual(record);
    expect(at(created, "updated_at")).toBe(at(created, "created_at"));
    expect(await show(slug)).toEqual(created);
    expect(await (await workspaces.own("GET", "/presets")).json()).toEqual({
      object: "list",
      data: [created],
    });
  });

  test("the list is newest first, and a change does not reorder it", async () => {
    const slugs = [await make(), await make(), await make()];
    await change(slugs[0] ?? "", { name: "changed" });
    expect((await list()).slice(0, 3).map((preset) => at(preset, "slug"))).toEqual(slugs.reverse());
  });

  test.each([
    [{}, "invalid_slug", "slug"],
    [{ slug: "", name: "p", config: {} }, "invalid_slug", "slug"],
    [{ slug: "Upper", name: "p", config: {} }, "invalid_slug", "slug"],
    [{ slug: "-dash", name: "p", config: {} }, "invalid_slug", "slug"],
    [{ slug: "under_score", name: "p", config: {} }, "invalid_slug", "slug"],
    [{ slug: "line\n", name: "p", config: {} }, "invalid_slug", "slug"],
    [{ slug: 7, name: "p", config: {} }, "invalid_slug", "slug"],
    [{ slug: "x", config: {} }, "name_required", "name"],
    [{ slug: "x", name: "  ", config: {} }, "name_required", "name"],
    [{ slug: "x", name: 7, config: {} }, "name_required", "name"],
    [{ slug: "x", name: "p" }, "config_required", "config"],
    [{ slug: "x", name: "p", config: null }, "config_required", "config"],
    [{ slug: "x", name: "p", config: [] }, "config_required", "config"],
    [{ slug: "x", name: "p", config: "{}" }, "config_required", "config"],
    [{ slug: "x", name: "p", config: {}, description: 7 }, "bad_request", "description"],
    [{ slug: "x", name: "p\u0000", config: {} }, "bad_request", "name"],
  ])("%j returns 400: %s", async (fields, code, param) => {
    const before = (await list()).length;
    expect(await errorOf(await create(fields))).toMatchObject({
      status: 400,
      code,
      param,
      type: "invalid_request_error",
    });
    expect((await list()).length).toBe(before);
  });

  test.each([
    [{ model: "" }, "model"],
    [{ model: 7 }, "model"],
    [{ model: "@preset/other" }, "model"],
    [{ models: "acme/large" }, "models"],
    [{ models: ["acme/large", "@preset/other"] }, "models[1]"],
    [{ system: ["x"] }, "system"],
    [{ temperature: 2.1 }, "temperature"],
    [{ temperature: "1" }, "temperature"],
    [{ max_tokens: 0 }, "max_tokens"],
    [{ max_completion_tokens: 1.5 }, "max_completion_tokens"],
    [{ top_p: 1.1 }, "top_p"],
    [{ top_k: -1 }, "top_k"],
    [{ frequency_penalty: -2.1 }, "frequency_penalty"],
    [{ presence_penalty: 2.1 }, "presence_penalty"],
    [{ repetition_penalty: "a" }, "repetition_penalty"],
    [{ stop: 7 }, "stop"],
    [{ seed: 1.5 }, "seed"],
    [{ response_format: "json" }, "response_format"],
    [{ response_format: {} }, "response_format.type"],
    [{ tools: {} }, "tools"],
    [{ tools: ["look"] }, "tools[0]"],
    [{ tool_choice: 7 }, "tool_choice"],
    [{ provider: "acme" }, "provider"],
    [{ provider: { only: "acme" } }, "provider.only"],
    [{ provider: { zdr: "yes" } }, "provider.zdr"],
    [{ provider: { sort: { by: "price", partition: "all" } } }, "provider.sort.partition"],
    [{ reasoning: "high" }, "reasoning"],
    [{ reasoning: { max_tokens: -1 } }, "reasoning.max_tokens"],
    [{ stream_options: { include_usage: 1 } }, "stream_options.include_usage"],
    [{ require_params: "tools" }, "require_params"],
    [{ min_context: -1 }, "min_context"],
  ])(
    "a configuration with %j returns 400 that names the field, for a creation and a change",
    async (config, field) => {
      const slug = await make({ config: { top_k: 5 } });
      const wrong = { status: 400, code: "bad_request", param: `config.${field}` };
      expect(await errorOf(await create({ slug: freshSlug(), name: "p", config }))).toMatchObject(
        wrong,
      );
      expect(await errorOf(await change(slug, { name: "new", config }))).toMatchObject(wrong);
      expect(await show(slug)).toMatchObject({ name: "p", config: { top_k: 5 } });
    },
  );

  test.each([
    ["sort", "dear", "price, throughput, latency"],
    ["preferred_max_latency", { p50: "fast" }, "must be a number"],
  ])("an invalid provider.%s is refused with what is accepted", async (field, value, accepted) => {
    const config = { provider: { [field]: value } };
    const { message } = await errorOf(await create({ slug: freshSlug(), name: "p", config }));
    expect(message).toContain(accepted);
  });

  test("unknown fields and nulls of a configuration are left out", async () => {
    const slug = await make({
      config: { temperature: 1, seed: null, messages: [], stream: true, nonsense: { a: 1 } },
    });
    expect(at(await show(slug), "config")).toEqual({ temperature: 1 });
  });

  test("a slug is unique within its workspace and free again once its preset is deleted", async () => {
    const slug = await make();
    const [again, twice] = [await create({ slug, name: "again", config: {} }), freshSlug()];
    expect(await errorOf(again)).toMatchObject({
      status: 409,
      code: "duplicate_slug",
      type: "conflict_error",
      param: "slug",
    });
    const both = await Promise.all(
      [1, 2].map(() => create({ slug: twice, name: "p", config: {} })),
    );
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(
      (await workspaces.stranger("POST", "/presets", { slug, name: "theirs", config: {} })).status,
    ).toBe(200);
    expect(await (await workspaces.own("DELETE", `/presets/${slug}`)).json()).toEqual({
      deleted: true,
      slug,
    });
    expect((await create({ slug, name: "anew", config: {} })).status).toBe(200);
    expect(await show(slug)).toMatchObject({ name: "anew" });
    expect(await (await workspaces.stranger("GET", `/presets/${slug}`)).json()).toMatchObject({
      name: "theirs",
    });
  });

  test("an omitted description stays, null clears it and a string sets it", async () => {
    const slug = await make({ description: "first" });
    await change(slug, { name: "n" });
    expect(await show(slug)).toMatchObject({ name: "n", description: "first" });
    await change(slug, { description: null });
    expect(await show(slug)).toMatchObject({ name: "n", description: null });
    await change(slug, { description: "second" });
    expect(await show(slug)).toMatchObject({ description: "second" });
  });

  test("a name changes unless it is blank, and a slug cannot be changed", async () => {
    const slug = await make({ name: "first" });
    expect((await change(slug, { name: "  " })).status).toBe(200);
    expect(await show(slug)).toMatchObject({ name: "first" });
    expect(await (await change(slug, { name: "second", slug })).json()).toMatchObject({
      slug,
      name: "second",
    });
    expect(await errorOf(await change(slug, { slug: "elsewhere" }))).toMatchObject({
      status: 400,
      param: "slug",
    });
    expect(await errorOf(await change(slug, { config: null }))).toMatchObject({
      status: 400,
      code: "config_required",
    });
  });

  test("a configuration is merged at its top level, and null removes a field", async () => {
    const config = { temperature: 0.2, top_p: 0.5, provider: { only: ["acme"], zdr: true } };
    const slug = await make({ config });
    await change(slug, {
      config: { temperature: 0.3, top_p: null, provider: { ignore: ["other"] }, seed: 1 },
    });
    expect(at(await show(slug), "config")).toEqual({
      temperature: 0.3,
      provider: { ignore: ["other"] },
      seed: 1,
    });
    await change(slug, { config: {} });
    expect(at(await show(slug), "config")).toEqual({
      temperature: 0.3,
      provider: { ignore: ["other"] },
      seed: 1,
    });
  });

  test("parallel changes are all kept", async () => {
    const slug = await make();
    await Promise.all(
      [{ seed: 1 }, { top_k: 2 }, { temperature: 1 }, { top_p: 1 }].map((config) =>
        change(slug, { config }),
      ),
    );
    expect(at(await show(slug), "config")).toEqual({ seed: 1, top_k: 2, temperature: 1, top_p: 1 });
  });

  test("an unknown preset returns 404, as does one of another workspace", async () => {
    const slug = await make({ name: "mine" });
    for (const [ask, path] of [
      [workspaces.own, "/presets/none"],
      [workspaces.stranger, `/presets/${slug}`],
    ] as const) {
      for (const method of ["GET", "PATCH", "DELETE"]) {
        const answer = await ask(method, path, method === "PATCH" ? { name: "theirs" } : undefined);
        expect(await errorOf(answer)).toMatchObject({ status: 404, code: "not_found" });
      }
    }
    expect(await show(slug)).toMatchObject({ name: "mine" });
    const theirs = listAt(await (await workspaces.stranger("GET", "/presets")).json(), "data");
    expect(theirs.every((preset) => at(preset, "name") === "theirs")).toBe(true);
  });

  test("GET /models lists presets for callers of the workspace, except with presets=0", async () => {
    const slug = await make({ config: everything });
    const models = async (query: string): Promise<unknown> =>
      (await workspaces.as(testLlmKey)("GET", `/models${query}`)).json();
    expect(at(await models(""), "presets")).toEqual(await list());
    expect(listAt(await models(""), "presets").map((preset) => textAt(preset, "slug"))).toContain(
      slug,
    );
    expect(Object.keys(Object(await models("?presets=0")))).not.toContain("presets");
    const anonymous: unknown = await (await fetch(`${workspaces.gateway().baseUrl}/models`)).json();
    expect(Object.keys(Object(anonymous))).not.toContain("presets");
  });

  test("changes and deletions survive a restart", async () => {
    const [changed, deleted] = [await make({ config: everything, description: "d" }), await make()];
    await change(changed, { config: { seed: 99 } });
    await workspaces.own("DELETE", `/presets/${deleted}`);
    const before = await list();
    await workspaces.restart();
    expect(await list()).toEqual(before);
    expect(before.map((preset) => at(preset, "slug"))).not.toContain(deleted);
    expect(await show(changed)).toMatchObject({
      description: "d",
      config: { ...everything, seed: 99 },
    });
  }, 240_000);
});

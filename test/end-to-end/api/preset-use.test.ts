import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  acme,
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  const pricing = { prompt: "0.50", completion: "1.50" };
  gateway = await startGateway({
    providers: [
      acme(upstream.baseUrl, {
        models: [
          { id: "acme/large", upstream_model: "large-v2", pricing },
          { id: "acme/tiny:free" },
        ],
      }),
      provider({
        id: "other",
        base_url: upstream.baseUrl,
        dialect: "openai-chat",
        api_key: "k",
        models: [{ id: "acme/large", pricing }],
      }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

let count = 0;

/** Makes a preset and gives the `model` that names it. */
async function preset(config: unknown): Promise<string> {
  const slug = `use-${(count += 1)}`;
  const headers = { authorization: `Bearer ${testManagementKey}` };
  expect((await gateway.post("/presets", { slug, name: "p", config }, { headers })).status).toBe(
    200,
  );
  return `@preset/${slug}`;
}

/** What the provider was sent for a request that was answered. */
async function sentFor(
  path: string,
  body: unknown,
): Promise<{ sent: unknown; response: Response }> {
  const response = await gateway.post(path, body);
  expect([response.status, await response.clone().text()]).toEqual([200, expect.any(String)]);
  return { sent: JSON.parse(String(upstream.requests.at(-1)?.body ?? "{}")) as unknown, response };
}

const messages = [{ role: "user", content: "Hi" }];

/** One request for each dialect, and where it carries its prompt. */
const dialects: [path: string, body: Record<string, unknown>][] = [
  ["/chat/completions", { messages }],
  ["/messages", { messages, max_tokens: 50 }],
  ["/responses", { input: "Hi", store: false }],
];

describe.each(dialects)("presets on %s", (path, body) => {
  test("send their model, system message and settings to the provider", async () => {
    const model = await preset({
      model: "acme/large",
      system: "Be kind.",
      temperature: 0.25,
      provider: { only: ["acme"] },
    });
    const { sent, response } = await sentFor(path, { model, ...body });
    expect(sent).toMatchObject({ model: "large-v2", temperature: 0.25 });
    expect(at(sent, "messages.0.content")).toEqual("Be kind.");
    expect(at(sent, "messages.0.role")).toMatch(/^(?:system|developer)$/);
    expect(response.headers.get("x-service-model")).toBe("acme/large");
    expect(response.headers.get("x-service-provider-chain")).toBe("acme");
  });

  test("are overridden by the request's own settings", async () => {
    const model = await preset({ model: "acme/large", temperature: 0.25, top_p: 0.5 });
    const { sent } = await sentFor(path, { model, ...body, temperature: 0.75 });
    expect(sent).toMatchObject({ temperature: 0.75, top_p: 0.5 });
  });

  test("with a free model count as free", async () => {
    const { response } = await sentFor(path, {
      model: await preset({ model: "acme/tiny:free" }),
      ...body,
    });
    expect(response.headers.get("x-service-model")).toBe("acme/tiny:free");
    expect(response.headers.get("x-service-credits-balance-at-admission")).toBeNull();
  });

  test("that are unknown return 404, and those without a model 400", async () => {
    const unknown = await gateway.post(path, { model: "@preset/none", ...body });
    const modelless = await gateway.post(path, {
      model: await preset({ temperature: 1 }),
      ...body,
    });
    expect([unknown.status, modelless.status]).toEqual([404, 400]);
    expect(at(await unknown.json(), "error.code")).toBe("not_found");
    expect(at(await modelless.json(), "error.message")).toContain("names no model");
  });
});

test.each([
  [
    "/messages",
    { max_tokens: 10, messages: [{ role: "user", content: "Hi" }] },
    [
      "preset.frequency_penalty",
      "preset.seed",
      "preset.response_format",
      "preset.reasoning.exclude",
    ],
  ],
  ["/responses", { input: "Hi" }, ["preset.stop"]],
])("name what %s has no field for", async (path, body, lost) => {
  const model = await preset({
    model: "acme/large",
    frequency_penalty: 0.5,
    seed: 7,
    stop: ["END"],
    response_format: { type: "json_object" },
    reasoning: { exclude: true },
  });
  const { response } = await sentFor(path, { model, ...body });
  const named = response.headers.get("x-service-translation-loss") ?? "";
  for (const field of lost) expect(named).toContain(field);
});

test("intersect provider lists with the request, and return 404 when none is left", async () => {
  const model = await preset({ model: "acme/large", provider: { only: ["other"] } });
  const both = await gateway.post("/chat/completions", {
    model,
    messages,
    provider: { only: ["acme", "other"] },
  });
  expect(both.headers.get("x-service-provider-chain")).toBe("other");
  const none = await gateway.post("/chat/completions", {
    model,
    messages,
    provider: { only: ["acme"] },
  });
  expect(await errorOf(none)).toMatchObject({ status: 404, code: "no_upstream" });
});

test("are named in the record of a background response, which can be filtered by them", async () => {
  const authorization = `Bearer ${testManagementKey}`;
  const made = await gateway.post(
    "/presets",
    { slug: "later", name: "Later", config: { model: "acme/large" } },
    { headers: { authorization } },
  );
  const presetId = textAt(await made.json(), "id");
  const asked = { model: "@preset/later", input: "Hi", background: true };
  const id = textAt(await (await gateway.post("/responses", asked)).json(), "id");
  await gateway.app.background.untilIdle();
  expect(await (await gateway.get(`/responses/${id}`)).json()).toMatchObject({
    status: "completed",
  });
  const generationId = id.replace(/^resp_/, "gen_");
  const list = await gateway.get(`/analytics/generations?preset_id=${presetId}`, { authorization });
  expect(listAt(await list.json(), "data")).toEqual([
    expect.objectContaining({ id: generationId, preset_id: presetId }),
  ]);
});

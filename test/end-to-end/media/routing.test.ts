import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { pixelPng } from "../clients/support/pixel-png.ts";

const sent: string[] = [];
const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    sent.push(await request.text());
    return Response.json(
      request.url.endsWith("/chat/completions")
        ? { id: "c", choices: [{ index: 0, message: { role: "assistant", content: "Hi" } }] }
        : { created: 1, data: [{ b64_json: "AAAA" }] },
    );
  },
});

/** A provider that is cheap for one size and dear for the other. */
const vendor = (id: string, small: string, large: string) =>
  provider({
    id,
    base_url: `http://127.0.0.1:${upstream.port}/${id}`,
    api_key: "k",
    dialect: { images: "openai-images" },
    models: [
      {
        id: "acme/pixels",
        upstream_model: "pixels",
        surface: "images",
        pricing: { image: { "512x512": small, "1024x1024": large } },
      },
    ],
  });

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    providers: [
      vendor("one", "0.01", "0.09"),
      vendor("two", "0.02", "0.03"),
      provider({
        id: "talker",
        base_url: `http://127.0.0.1:${upstream.port}/talker`,
        api_key: "k",
        dialect: "openai-chat",
        models: [
          { id: "acme/words", capabilities: ["chat"], pricing: { prompt: "1", completion: "1" } },
          {
            id: "acme/draws",
            capabilities: ["chat", "image-generation"],
            pricing: { prompt: "2", completion: "2" },
          },
        ],
      }),
    ],
    routers: { "service/auto": { members: ["acme/words", "acme/draws"], quality: [] } },
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

const ask = (body: object) => gateway.post("/images/generations", { prompt: "x", ...body });

test.each([
  ["512x512", "one", 0.01],
  ["1024x1024", "two", 0.03],
])("the cheapest provider of %s serves", async (size, chain, cost) => {
  const response = await ask({ model: "acme/pixels:floor", size });
  expect(response.headers.get("x-service-provider-chain")).toBe(chain);
  expect(await response.json()).toMatchObject({ usage: { cost } });
});

test.each<[how: string, members: Record<string, string>]>([
  ["in brackets", { "provider[order][]": "two", "provider[allow_fallbacks]": "false" }],
  ["as JSON", { provider: JSON.stringify({ order: ["two"], allow_fallbacks: false }) }],
])("a form names providers %s, and its tags stay here", async (_, members) => {
  const form = new FormData();
  const tags = { "metadata[team]": "red", session_id: "s-1" };
  const fields = { model: "acme/pixels", prompt: "x", size: "512x512", ...tags, ...members };
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append("image", new File([Buffer.from(pixelPng, "base64")], "a.png", { type: "image/png" }));
  const response = await fetch(`${gateway.baseUrl}/images/edits`, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}` },
    body: form,
  });
  expect([response.status, response.headers.get("x-service-provider-chain")]).toEqual([200, "two"]);
  const names = [...(sent.at(-1)?.match(/name="[^"]+"/g) ?? [])];
  expect(names).toEqual(
    ["size", "model", "prompt", "image", "a.png"].map((name) => expect.stringContaining(name)),
  );
});

test("a tag of a form that looks like a number is a tag all the same", async () => {
  const headers = { authorization: `Bearer ${testManagementKey}` };
  const limit = { name: "tags", scope: "tag:build", subject: "*", limit: 0.015, action: "block" };
  const made = await gateway.post("/budgets", limit, { headers });
  expect(made.status).toBe(200);
  const { data } = (await made.json()) as { data: { id: string } };
  const askAs = async (build: string): Promise<number> => {
    const form = new FormData();
    const fields = { model: "acme/pixels:floor", prompt: "x", size: "512x512" };
    for (const [name, value] of Object.entries({ ...fields, "metadata[build]": build }))
      form.append(name, value);
    form.append("image", new File([Buffer.from(pixelPng, "base64")], "a.png"));
    const body = { method: "POST", headers: { authorization: `Bearer ${testLlmKey}` }, body: form };
    return (await fetch(`${gateway.baseUrl}/images/edits`, body)).status;
  };
  expect([await askAs("4.20"), await askAs("4.20"), await askAs("4.2")]).toEqual([200, 402, 200]);
  await fetch(`${gateway.baseUrl}/budgets/${data.id}`, { method: "DELETE", headers });
});

test.each([
  ["512x512", { image: "0.01" }, 200, "one"],
  ["512x512", { image: 0.009 }, 404, null],
  ["1024x1024", { image: 0.05 }, 200, "two"],
  ["1024x1024", { image: 0.05, request: 0 }, 200, "two"],
  ["512x512", { image: "cheap" }, 400, null],
])("%s is bounded by %j", async (size, max_price, status, chain) => {
  const response = await ask({ model: "acme/pixels:floor", size, n: 2, provider: { max_price } });
  expect([response.status, response.headers.get("x-service-provider-chain")]).toEqual([
    status,
    chain,
  ]);
});

test("a model shows what it makes and what that costs", async () => {
  const response = await gateway.get("/models?category=image");
  const { data } = (await response.json()) as { data: { id: string }[] };
  expect(data.find(({ id }) => id === "acme/pixels")).toMatchObject({
    category: "image",
    architecture: { output_modalities: ["image"] },
    pricing: { image: "0.03", images: { "512x512": { default: 0.02 } } },
  });
});

test.each([
  ["image", ["acme/draws", "acme/pixels"]],
  ["audio,embeddings", []],
  ["all", ["acme/draws", "acme/pixels", "acme/words"]],
])("models are listed by their output: %s", async (output, ids) => {
  const response = await gateway.get(`/models?output_modalities=${output}`);
  const { data } = (await response.json()) as { data: { id: string }[] };
  expect(data.map(({ id }) => id).filter((id) => id.startsWith("acme/"))).toEqual(ids);
});

test.each([
  [undefined, "acme/words"],
  [["text", "image"], "acme/draws"],
])("the pool is asked for a model that makes %j", async (modalities, model) => {
  const response = await gateway.post("/chat/completions", {
    model: "service/auto",
    messages: [{ role: "user", content: "hi" }],
    modalities,
  });
  expect(await response.json()).toMatchObject({ model });
});

test("a preset sets the size", async () => {
  const made = await fetch(`${gateway.baseUrl}/presets`, {
    method: "POST",
    headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      name: "Large",
      slug: "large",
      config: { model: "acme/pixels:floor", size: "1024x1024" },
    }),
  });
  expect(made.status).toBeLessThan(300);
  const response = await ask({ model: "@preset/large" });
  expect(await response.json()).toMatchObject({ usage: { cost: 0.03 } });
});

test("the record explains the charge by part", async () => {
  const response = await ask({ model: "acme/pixels", size: "512x512", n: 1 });
  const id = `gen_${response.headers.get("x-service-trace-id")}`;
  const record = await gateway.get(`/generation?id=${id}`);
  const { data } = (await record.json()) as {
    data: { surface: string; price: { lines: object[] } };
  };
  expect(data.surface).toBe("images");
  expect(data.price.lines).toContainEqual(
    expect.objectContaining({ part: "outputImages", quantity: 1 }),
  );
});

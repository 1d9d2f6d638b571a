import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";

const upstream = Bun.serve({
  port: 0,
  fetch: () => Response.json({ created: 1, data: [{ b64_json: "AAAA" }] }),
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
    providers: [vendor("one", "0.01", "0.09"), vendor("two", "0.02", "0.03")],
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

test("a model shows what it makes and what that costs", async () => {
  const response = await gateway.get("/models?category=image");
  const { data } = (await response.json()) as { data: { id: string }[] };
  expect(data.find(({ id }) => id === "acme/pixels")).toMatchObject({
    category: "image",
    architecture: { output_modalities: ["image"] },
    pricing: { image: "0.03", images: { "512x512": { default: 0.02 } } },
  });
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

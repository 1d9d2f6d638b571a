import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway, testManagementKey } from "../../support/gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const manage = (method: string, path: string, body?: unknown, agent = "test"): Promise<Response> =>
  fetch(gateway.baseUrl + path, {
    method,
    headers: {
      authorization: `Bearer ${testManagementKey}`,
      "content-type": "application/json",
      "user-agent": agent,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

test("creating a key answers 200, and 201 to OpenRouter's SDKs", async () => {
  for (const [agent, status] of [
    ["curl/8.9", 200],
    ["OpenAI/JS 7.55.0", 200],
    ["speakeasy-sdk/typescript 1.3.19 2.914.0 1.0.0 @openrouter/sdk", 201],
    ["speakeasy-sdk/python 1.0.2 2.914.0 1.0.0 openrouter", 201],
  ] as const)
    expect((await manage("POST", "/keys", { name: "k" }, agent)).status).toBe(status);
});

test("lists take an offset where they take a cursor", async () => {
  const idsOf = async (query: string): Promise<string[]> =>
    ((await (await manage("GET", `/keys?${query}`)).json()) as { data: { id: string }[] }).data.map(
      ({ id }) => id,
    );
  const all = await idsOf("");
  expect(await idsOf("offset=2")).toEqual(all.slice(2));
  expect(await idsOf("offset=1&limit=2")).toEqual(all.slice(1, 3));
  expect(await idsOf("offset=99")).toEqual([]);
  const refused = await manage("GET", "/keys?offset=-1");
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("offset")]);
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { listAt, textAt } from "./at.ts";

const pricing = { prompt: "0.50", completion: "1.50" };
const entry = (id: string, models: readonly string[], fields: Record<string, unknown> = {}) =>
  provider({
    id,
    base_url: "http://127.0.0.1:9/v1",
    dialect: "openai-chat",
    api_key: "k",
    ...fields,
    models: models.map((model) => ({ id: model, pricing })),
  });

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    providers: [
      entry("keeps", ["acme/kept", "acme/both"]),
      entry("forgets", ["acme/forgotten", "acme/both"], { data_policy: { zdr: true } }),
    ],
  });
});
afterAll(() => gateway.stop());

const demand = async (settings: unknown): Promise<void> => {
  const answer = await gateway.post("/security/privacy", settings, {
    method: "PATCH",
    headers: { authorization: `Bearer ${testManagementKey}` },
  });
  expect(answer.status).toBe(200);
};
const idsOf = async (query: string, ask = (path: string) => gateway.get(path)): Promise<string[]> =>
  listAt(await (await ask(`/models${query}`)).json(), "data")
    .map((model) => textAt(model, "id"))
    .filter((id) => id.startsWith("acme/"));
const chainOf = async (model: string): Promise<string[]> =>
  listAt(await (await gateway.get(`/models/${model}/routing-preview`)).json(), "data").map(
    (entry) => textAt(entry, "provider"),
  );

const all = ["acme/both", "acme/forgotten", "acme/kept"];

test("models served only by blocked providers are not listed, except with privacy=0", async () => {
  expect(await idsOf("")).toEqual(all);
  await demand({ blocked_providers: ["keeps"] });
  expect(await idsOf("")).toEqual(["acme/both", "acme/forgotten"]);
  for (const query of ["?privacy=0", "?privacy=false", "?all=1"])
    expect(await idsOf(query)).toEqual(all);
  expect(await idsOf("?privacy=1")).toEqual(["acme/both", "acme/forgotten"]);
  expect(await idsOf("", (path) => fetch(gateway.baseUrl + path))).toEqual(all);
  expect(await chainOf("acme/both")).toEqual(["forgets"]);
  await demand({ blocked_providers: [] });
  expect(await chainOf("acme/both")).toHaveLength(2);
});

test("models that nobody serves with zero data retention are not listed when it is required", async () => {
  await demand({ zdr: true });
  expect(await idsOf("")).toEqual(["acme/both", "acme/forgotten"]);
  expect(await idsOf("?privacy=0")).toEqual(all);
  await demand({ zdr: false });
  expect(await idsOf("")).toEqual(all);
});

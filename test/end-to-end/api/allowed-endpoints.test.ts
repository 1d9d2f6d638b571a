import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

async function keyFor(allowedEndpoints: string[] | null): Promise<string> {
  const created = await gateway.post(
    "/keys",
    { name: "narrow", allowed_endpoints: allowedEndpoints },
    {
      headers: { authorization: `Bearer ${testManagementKey}` },
    },
  );
  return textAt(await created.json(), "key");
}

const ask = (path: string, key: string): Promise<Response> =>
  gateway.get(path, { authorization: `Bearer ${key}` });

test.each([
  ["/api/v1/credits", "/credits", "/api/v1/credits"],
  ["/v1/credits", "/credits", "/api/v1/credits"],
  ["/credits", "/credits", "/api/v1/credits"],
  ["/api/v1/credits/", "/credits", "/api/v1/credits"],
  ["/generation/:id", "/generation/gen_none", "/api/v1/generation/{id}"],
  ["/api/v1/generation/{id}", "/generation/gen_none", "/api/v1/generation/{id}"],
  ["/v1/generation/{generation_id}", "/generation/gen_none", "/api/v1/generation/{id}"],
  ["/models/{owner}/{model}", "/models/acme/large", "/api/v1/models/{owner}/{model}"],
])(
  "a key that allows only %s can call %s and gets 403 for other endpoints",
  async (listed, path, shown) => {
    const key = await keyFor([listed]);
    expect([200, 404]).toContain((await ask(path, key)).status);
    const refused = await errorOf(await ask("/generation?id=gen_none", key));
    expect(refused).toMatchObject({
      status: 403,
      code: "insufficient_scope",
      type: "permission_error",
    });
    expect(refused.metadata).toMatchObject({ allowed_endpoints: [shown] });
  },
);

test.each([[null], [[]]])("a key with allowed_endpoints %p can call everything", async (list) => {
  const key = await keyFor(list);
  for (const path of ["/credits", "/auth/key", "/key", "/models"])
    expect((await ask(path, key)).status).toBe(200);
});

test("a key without access to an endpoint gets 403 before its body is parsed", async () => {
  const key = await keyFor(["/credits"]);
  const refused = await gateway.post("/chat/completions", "no JSON", {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(await errorOf(refused)).toMatchObject({ status: 403, code: "insufficient_scope" });
});

test("a restricted key can call endpoints that need no credential", async () => {
  const key = await keyFor(["/credits"]);
  expect((await ask("/providers", key)).status).toBe(200);
});

test("a restricted key can read its own record", async () => {
  const key = await keyFor(["/chat/completions"]);
  expect((await ask("/key", key)).status).toBe(200);
  expect((await ask("/auth/key", key)).status).toBe(200);
  expect((await ask("/credits", key)).status).toBe(403);
});

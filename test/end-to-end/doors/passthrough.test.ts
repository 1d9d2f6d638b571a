import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import {
  provider,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { ServedRequest } from "../../../src/http/served-request.ts";
import { passOn } from "../../../src/inference/pipeline/passthrough/passed-call.ts";
import { fieldsOf, listOf, type Fields } from "../matrix/support/json-value.ts";

/** What the provider was asked, the newest last. */
const asked: { method: string; url: string; headers: Headers; body: string }[] = [];
let upstream: ReturnType<typeof Bun.serve>;
let gateway: TestGateway;
let passKey = "";

beforeAll(async () => {
  upstream = Bun.serve({
    port: 0,
    async fetch(request) {
      const { method, url, headers } = request;
      asked.push({ method, url, headers, body: await request.text() });
      if (url.includes("other-keys"))
        return Response.json({ error: "Missing scopes: api.usage.read" }, { status: 401 });
      if (url.includes("unknown-key"))
        return Response.json({ error: "Incorrect API key provided." }, { status: 401 });
      if (url.includes("refused"))
        return Response.json({ error: "no: upstream-secret" }, { status: 422 });
      if (url.includes("pieces")) {
        const pieces = ["a u", "pstream-", "secret, up"].values();
        return new Response(
          new ReadableStream({
            async pull(controller) {
              const { value, done } = pieces.next();
              if (done === true) controller.close();
              else controller.enqueue(Buffer.from(value));
              // The pieces arrive one by one.
              await Bun.sleep(5);
            },
          }),
        );
      }
      if (url.includes("bytes"))
        return new Response(new Uint8Array([0, 255, 128, 10]), {
          headers: {
            "content-type": "audio/mpeg",
            "set-cookie": "a=b",
            location: "http://x/",
            "openai-organization": "org-of-the-operator",
            "openai-processing-ms": "3",
            "x-goog-upload-url": "http://x/?key=upstream-secret",
          },
        });
      return Response.json({ said: "special" });
    },
  });
  gateway = await startGateway({
    providers: [
      provider({
        id: "acme",
        dialect: "openai-chat",
        base_url: `http://127.0.0.1:${upstream.port}/v1`,
        api_key: "upstream-secret",
        models: [],
        passthrough: [
          { path: "/v1/special", price: "0.002" },
          { path: "/v1/files/*", price: 0.001, methods: ["GET", "DELETE"] },
        ],
      }),
    ],
  });
  passKey = await keyWith({ scopes: ["inference", "passthrough"] });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

async function keyWith(fields: Fields): Promise<string> {
  const made = await gateway.post(
    "/keys",
    { name: "pass", ...fields },
    { headers: { authorization: `Bearer ${testManagementKey}` } },
  );
  const { key, data } = fieldsOf(await made.json());
  expect(fieldsOf(data).scopes).toEqual(fields.scopes ?? ["inference"]);
  return String(key);
}

const pass = (path: string, init: RequestInit = {}, key = passKey): Promise<Response> =>
  fetch(gateway.origin + path, {
    ...init,
    headers: { authorization: `Bearer ${key}`, ...(init.headers as Record<string, string>) },
  });

test("a priced route is called with the provider's credential, and charged and recorded", async () => {
  const response = await pass("/p/acme/v1/special?deep=1&key=sk-svc-v1-mine", {
    method: "POST",
    body: '{"a":1}',
    headers: { "content-type": "application/json", "x-vendor": "1", cookie: "c=1" },
  });
  expect([response.status, await response.json()]).toEqual([200, { said: "special" }]);
  expect(response.headers.get("x-service-credits-charged")).toBe("0.002");
  const sent = asked.at(-1);
  expect([sent?.method, new URL(sent?.url ?? "").pathname, sent?.body]).toEqual([
    "POST",
    "/v1/special",
    '{"a":1}',
  ]);
  expect(new URL(sent?.url ?? "").search).toBe("?deep=1");
  expect(sent?.headers.get("authorization")).toBe("Bearer upstream-secret");
  expect([sent?.headers.get("x-vendor"), sent?.headers.get("cookie")]).toEqual(["1", null]);
  const id = response.headers.get("x-service-trace-id");
  const record = await (await gateway.get(`/generation/${id}`)).json();
  expect(record).toMatchObject({
    data: { model: "acme/v1/special", total_cost: 0.002, provider_name: "acme" },
  });
});

test("a credential that an answer repeats in pieces is hidden, and what is held back is sent", async () => {
  using idle = spyOn(ServedRequest.prototype, "setIdleSeconds");
  const response = await pass("/p/acme/v1/files/pieces");
  expect(await response.text()).toBe("a ***************, up");
  // The provider may be silent for longer than a connection between requests.
  expect(idle.mock.calls.flat().slice(0, 3)).toEqual([0, 75, 0]);
});

test("every method of a route that names it, below both bases, with bytes kept", async () => {
  const response = await pass("/api/v1/p/acme/v1/files/bytes");
  expect(new Uint8Array(await response.arrayBuffer())).toEqual(new Uint8Array([0, 255, 128, 10]));
  expect(response.headers.get("content-type")).toBe("audio/mpeg");
  for (const name of ["set-cookie", "location", "openai-organization", "x-goog-upload-url"])
    expect([name, response.headers.get(name)]).toEqual([name, null]);
  expect(response.headers.get("openai-processing-ms")).toBe("3");
  expect((await pass("/v1/p/acme/v1/files/one", { method: "DELETE" })).status).toBe(200);
  expect((await pass("/v1/p/acme/v1/files/one", { method: "PUT", body: "x" })).status).toBe(403);
});

test("a request cannot become another one by its headers or query, or choose a project", async () => {
  const overrides = {
    "x-http-method-override": "DELETE",
    "x-original-url": "/v1/admin",
    "openai-organization": "org-other",
    "openai-project": "proj_other",
    "x-amz-security-token": "t",
    "x-vendor-token": `Token ${passKey}`,
  };
  const query =
    "?a=1&$httpMethod=DELETE&%24httpHeaders=x-goog-a&access_token=t&api-key=k&_method=PUT" +
    `&note=key:${passKey}`;
  expect((await pass(`/p/acme/v1/files/one${query}`, { headers: overrides })).status).toBe(200);
  const sent = asked.at(-1);
  expect(new URL(sent?.url ?? "").search).toBe("?a=1");
  for (const name of Object.keys(overrides))
    expect([name, sent?.headers.get(name)]).toEqual([name, null]);
});

test("sockets are refused, and neither passed on nor charged", async () => {
  const before = asked.length;
  const response = await pass("/p/acme/v1/special", {
    headers: { upgrade: "websocket", connection: "upgrade" },
  });
  expect([response.status, asked.length]).toEqual([501, before]);
});

test("an idempotency key reaches the provider, whose promise it is", async () => {
  const headers = { "idempotency-key": "one" };
  await pass("/p/acme/v1/special", { method: "POST", body: "{}", headers });
  expect(asked.at(-1)?.headers.get("idempotency-key")).toBe("one");
});

test("what the provider refuses costs nothing", async () => {
  const response = await pass("/p/acme/v1/files/refused");
  expect([response.status, response.headers.get("x-service-credits-charged")]).toEqual([422, "0"]);
  expect(await response.json()).toEqual({ error: "no: ***************" });
});

describe("nothing else is reached:", () => {
  test.each([
    "/p/acme/v1/chat/completions",
    "/p/acme/v1/files/../special2",
    "/p/acme/v1/files/%2e%2e/special2",
    "/p/acme/v1/files/..%2fadmin",
    "/p/acme//evil.example/v1/special",
    "/p/acme/@evil.example/v1/special",
    "/p/acme/v1/files/a%5c..%5cadmin",
    // Folders for servers that leave out what follows a semicolon, or that decode twice.
    "/p/acme/v1/files/..;/admin",
    "/p/acme/v1/files/..;a=b/admin",
    "/p/acme/v1/files/%252e%252e/admin",
    "/p/acme/v1/files/%252%65%252%65/admin",
    "/p/acme/v1/files/a%25252fadmin",
    "/p/acme/v1/special%0d%0ax:1",
    "/p/acme/http://evil.example/v1/special",
    "/p/acme",
  ])("%s", async (path) => {
    const before = asked.length;
    const { hostname, port } = new URL(gateway.origin);
    // A client that sends the path as it is written.
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (own, bytes) => {
          answered.resolve(bytes.toString().slice(9, 12));
          own.end();
        },
      },
    });
    const answered = Promise.withResolvers<string>();
    socket.write(
      `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${passKey}\r\nconnection: close\r\n\r\n`,
    );
    expect(["403", "404", "400"]).toContain(await answered.promise);
    expect(asked).toHaveLength(before);
  });

  test("a key without the scope, of another kind, or with a list of models", async () => {
    const path = "/p/acme/v1/special";
    expect((await pass(path, {}, testLlmKey)).status).toBe(403);
    expect((await pass(path, {}, testManagementKey)).status).toBe(401);
    const limited = await keyWith({
      scopes: ["inference", "passthrough"],
      allowed_models: ["a/b"],
    });
    expect((await pass(path, {}, limited)).status).toBe(403);
    expect((await pass("/p/nobody/v1/special")).status).toBe(404);
  });

  test("a key's limit bounds what many requests at once may spend", async () => {
    const poor = await keyWith({ scopes: ["inference", "passthrough"], limit: 0.005 });
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => pass("/p/acme/v1/special", { method: "POST" }, poor)),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(2);
    expect(statuses.filter((status) => status === 402)).toHaveLength(10);
    const keys = await gateway.get("/keys", { authorization: `Bearer ${testManagementKey}` });
    const used = listOf(fieldsOf(await keys.json()).data).find(({ limit }) => limit === 0.005);
    expect(used?.usage).toBe(0.004);
  });
});

const manage = (path: string, body?: Fields, method = body === undefined ? "GET" : "POST") =>
  fetch(gateway.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

test("an own key of the workspace pays, is hidden, and counts towards its quota", async () => {
  const made = await manage("/auth/byok", {
    provider_id: "acme",
    api_key: "own-secret-of-mine",
    label: "own",
    quota: { limit: 0.003 },
  });
  const { id } = fieldsOf(await made.json());
  const poor = await keyWith({ scopes: ["inference", "passthrough"], limit: 0.0001 });
  const ask = () => pass("/p/acme/v1/special", { method: "POST" }, poor);
  const first = await ask();
  expect([
    first.status,
    first.headers.get("x-service-credits-charged"),
    first.headers.get("x-service-credential-source"),
    asked.at(-1)?.headers.get("authorization"),
  ]).toEqual([200, "0", "own_byok", "Bearer own-secret-of-mine"]);
  const trace = first.headers.get("x-service-trace-id");
  expect(await (await gateway.get(`/generation/${trace}`)).json()).toMatchObject({
    data: { total_cost: 0, is_byok: true, provider_key_id: id, credential_source: "own_byok" },
  });
  expect((await ask()).status).toBe(200);
  // What is left of the quota is used up, so that the gateway's credential is asked, which costs.
  expect((await ask()).status).toBe(402);
  const paid = await pass("/p/acme/v1/special", { method: "POST" });
  expect([
    paid.headers.get("x-service-credits-charged"),
    paid.headers.get("x-service-credential-source"),
  ]).toEqual(["0.002", "platform"]);
  expect((await manage(`/auth/byok/keys/${id}`, undefined, "DELETE")).status).toBe(200);
});

test("an own key counts as refused where its provider does not know it, and not on a route of other keys", async () => {
  const sent = { provider_id: "acme", api_key: "own-secret-of-nobody", label: "own" };
  const { id } = fieldsOf(await (await manage("/auth/byok", sent)).json());
  const answerOf = async (path: string): Promise<unknown[]> => {
    const answer = await pass(`/p/acme/v1/files/${path}`);
    const { error } = fieldsOf(await answer.json());
    return [answer.status, error, answer.headers.get("x-service-credential-source")];
  };
  const other = [401, "Missing scopes: api.usage.read", "own_byok"];
  expect([await answerOf("other-keys"), await answerOf("other-keys")]).toEqual([other, other]);
  const unknown = [401, "Incorrect API key provided."];
  expect(await answerOf("unknown-key")).toEqual([...unknown, "own_byok"]);
  expect(await answerOf("unknown-key")).toEqual([...unknown, "platform"]);
  expect((await manage(`/auth/byok/keys/${id}`, undefined, "DELETE")).status).toBe(200);
});

test("an own key that does not open is given back", async () => {
  const released: string[] = [];
  const providerKeys = {
    ownKeys: () => [{ id: "byok_1" }],
    isResting: () => false,
    take: () => true,
    secretOf: () => {
      throw new Error("it does not open");
    },
    release: (id: string) => released.push(id),
  };
  const call = {
    generationId: "gen_1",
    provider: { id: "acme" },
    caller: { workspace: { id: "ws_1" } },
    target: { route: { priceNanoUsd: 1n } },
  };
  const passing = passOn(...([{ providerKeys }, call] as unknown as Parameters<typeof passOn>));
  expect(String(await passing.catch((reason: unknown) => reason))).toContain("does not open");
  expect(released).toEqual(["gen_1"]);
});

test("a limit that counts own keys bounds what many requests at once may spend", async () => {
  const sent = { provider_id: "acme", api_key: "own-secret-of-limits", label: "limited" };
  const { id } = fieldsOf(await (await manage("/auth/byok", sent)).json());
  const limited = await keyWith({
    scopes: ["inference", "passthrough"],
    limit: 0.005,
    include_byok_in_limit: true,
  });
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => pass("/p/acme/v1/special", { method: "POST" }, limited)),
  );
  const statuses = answers.map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(2);
  expect(statuses.filter((status) => status === 402)).toHaveLength(6);
  expect((await manage(`/auth/byok/keys/${id}`, undefined, "DELETE")).status).toBe(200);
});

test("a request counts towards the customer of its header, whose plan bounds it", async () => {
  const plan = { type: "free", allowance: 0.0045, markup: 0.1 };
  await manage("/customers", { external_id: "shop-17", plan });
  const ask = (): Promise<Response> =>
    pass("/p/acme/v1/special", { method: "POST", headers: { "x-service-customer": "shop-17" } });
  const answers = await Promise.all(Array.from({ length: 8 }, ask));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
  const refused = await ask();
  expect(refused.status).toBe(402);
  expect(fieldsOf(fieldsOf(fieldsOf(await refused.json()).error).metadata)).toMatchObject({
    reason: "customer_limit_reached",
    customer: "shop-17",
  });
  const scopes = ["inference", "passthrough"];
  const sold = await manage("/customers/shop-17/keys", { name: "sold", scopes });
  expect(fieldsOf(fieldsOf(await sold.json()).data).scopes).toEqual(scopes);
  const shown = fieldsOf(await (await manage("/customers/shop-17")).json());
  expect(shown.usage).toMatchObject({ requests: 2, cost: 0.004, price: 0.0044, margin: 0.0004 });
});

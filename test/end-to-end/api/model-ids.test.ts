import { afterAll, beforeAll, expect, test } from "bun:test";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";

let upstream: FaultUpstream;
const gateways: Record<"refuse" | "pass", TestGateway | undefined> = {
  refuse: undefined,
  pass: undefined,
};
beforeAll(async () => {
  upstream = await startFaultUpstream();
  const providers = [
    provider({ id: "anthropic", base_url: upstream.baseUrl, dialect: "openai-chat", api_key: "k" }),
  ];
  gateways.refuse = await startGateway({ providers });
  gateways.pass = await startGateway({
    providers,
    unknownModelPricing: { prompt: "10", completion: "100" },
  });
});
afterAll(async () => {
  for (const gateway of Object.values(gateways)) await gateway?.stop();
  upstream.stop();
});

const send = async (
  gateway: keyof typeof gateways,
  path: string,
  model: string,
): Promise<Response> => {
  const response = await gateways[gateway]?.post(path, {
    ...chatRequest({ model, provider: { only: ["anthropic"] } }),
    max_tokens: 50,
  });
  if (response === undefined) throw new Error("the gateway did not start");
  return response;
};
const lastModel = (): unknown => at(upstream.requests.at(-1)?.json(), "model");

test.each([
  [
    "/messages",
    "claude-sonnet-4-5-20250929",
    "anthropic/claude-sonnet-4-5-20250929",
    "claude-sonnet-4-5-20250929",
  ],
  ["/messages", "claude-opus-5-5", "anthropic/claude-opus-5-5", "claude-opus-5-5"],
  ["/messages", "claude-haiku-4-5", "anthropic/claude-haiku-4-5", "claude-haiku-4-5"],
  ["/chat/completions", "claude-opus-4-0", "anthropic/claude-opus-4", "claude-opus-4-0"],
])("%s accepts %s without an owner", async (path, id, catalogId, wireName) => {
  const response = await send("refuse", path, id);
  expect([response.status, response.headers.get("x-service-model")]).toEqual([200, catalogId]);
  expect(lastModel()).toBe(wireName);
});

test.each(["/messages", "/chat/completions", "/responses"])(
  "%s: an id newer than the catalog returns 404 with similar models and hints",
  async (path) => {
    const response = await gateways.refuse?.post(path, {
      ...chatRequest({ model: "claude-sonnet-5-5" }),
      input: "Hello",
      max_tokens: 50,
    });
    const body: unknown = await response?.json();
    expect(response?.status).toBe(404);
    expect(at(body, "error.message")).toMatch(
      /claude-sonnet-5-5.*npm run catalog:refresh.*catalog\.unknown_models/,
    );
    expect(at(body, "error.metadata.similar_models")).toContainEqual(
      expect.stringMatching(/^anthropic\/claude-sonnet-/),
    );
    if (path === "/messages")
      expect(body).toMatchObject({ type: "error", error: { type: "not_found_error" } });
  },
);

test("an id of an unknown vendor returns 404 without operator hints or similar ids", async () => {
  const error = await errorOf(await send("refuse", "/chat/completions", "nobody/nothing"));
  expect(error.message).toEndWith("GET /models lists what is.");
  expect(error).toMatchObject({ status: 404, code: "model_unavailable" });
});

test("GET /models/{id} accepts the vendor's id too", async () => {
  const response = await gateways.refuse?.get("/models/claude-haiku-4-5");
  expect(at(await response?.json(), "id")).toBe("anthropic/claude-haiku-4-5");
});

test("an id missing from the catalog returns 404, unless the operator configured a pass-through price", async () => {
  const before = upstream.requests.length;
  const refused = await errorOf(await send("refuse", "/chat/completions", "claude-opus-9-9"));
  expect(refused).toMatchObject({ status: 404, code: "model_unavailable" });
  expect(upstream.requests.length).toBe(before);
  for (const id of ["claude-opus-9-9", "anthropic/claude-opus-9-9"]) {
    const response = await send("pass", "/chat/completions", id);
    expect([response.status, response.headers.get("x-service-model")]).toEqual([
      200,
      "anthropic/claude-opus-9-9",
    ]);
    expect(lastModel()).toBe("claude-opus-9-9");
    const usage = at(await response.json(), "usage");
    expect(at(usage, "cost")).toBe(
      (Number(at(usage, "prompt_tokens")) * 10 + Number(at(usage, "completion_tokens")) * 100) /
        1e6,
    );
  }
  // No provider of the catalog is this maker's own with a credential.
  expect(await errorOf(await send("pass", "/chat/completions", "gpt-99"))).toMatchObject({
    status: 404,
  });
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import { endpoints } from "../../../src/endpoints/index.ts";
import {
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { paymentSettings } from "../../support/stripe/paying-gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sandbox: true,
    payments: paymentSettings("http://127.0.0.1:1"),
    referrals: { referrerNano: 1n, referredNano: 1n, after: "sign_up", maximumPerWorkspace: 1 },
  });
});
afterAll(() => gateway.stop());

/** Path parameters with which the endpoints find something. */
const parameters: Record<string, string> = {
  ":owner": "sandbox",
  ":model": "chat:free",
  ":file": "sandbox.svg",
  ":id": "none",
};
const bodies: Record<string, unknown> = {
  "/chat/completions": {
    model: "sandbox/chat:free",
    messages: [{ role: "user", content: "Hello" }],
  },
  "/keys": { name: "standing" },
  "/api/chat": { model: "sandbox/chat:free", messages: [{ role: "user", content: "Hello" }] },
  "/api/generate": { model: "sandbox/chat:free", prompt: "Hello" },
};

test.each(endpoints.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint] as const))(
  "%s has the trace id and the rate limit headers on every response",
  async (_, endpoint) => {
    const { method, base, path, access, counting } = endpoint;
    const url =
      gateway.origin +
      (base === "api" ? "/v1" : "") +
      path.replace(/:\w+/g, (name) => parameters[name] ?? name);
    const key = access.llmKey ? testLlmKey : testManagementKey;
    const response = await fetch(url, {
      redirect: "manual",
      method,
      headers: { authorization: `Bearer ${key}` },
      ...(method === "GET" ? {} : { body: JSON.stringify(bodies[path] ?? {}) }),
    });
    const { headers } = response;
    expect(headers.get("x-service-trace-id")).toMatch(/^[0-9a-f]{32}$/);
    expect(headers.get("x-request-id")).toBe(headers.get("x-service-trace-id"));
    expect(headers.get("request-id")).toBe(headers.get("x-service-trace-id"));
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    if (response.status !== 501) expect(response.status).toBeLessThan(500);
    if (counting === "none") return;
    expect(headers.get("x-ratelimit-limit")).toMatch(/^\d+$/);
    expect(headers.get("x-ratelimit-window")).toBe("60");
    expect(headers.get("x-ratelimit-tier")).not.toBeNull();
    expect(headers.get("ratelimit-limit")).toBe(headers.get("x-ratelimit-limit"));
    expect(headers.get("ratelimit-policy")).toBe(`${headers.get("x-ratelimit-limit")};w=60`);
    await response.text();
  },
);

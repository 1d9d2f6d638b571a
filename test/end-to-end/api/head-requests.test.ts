import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../../support/gateway.ts";

// Claude Code (2.1.329) sends HEAD /api/hello to its base URL before the first request, older
// versions HEAD /. Both want 200 or 404 without a credential, and follow no redirect.

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const head = (path: string): Promise<Response> =>
  fetch(gateway.origin + path, { method: "HEAD", redirect: "manual" });

test.each([
  ["/", 200],
  ["/api/hello", 404],
  ["/api", 404],
  ["/api/v1", 404],
  ["/v1", 404],
  ["/docs", 200],
  ["/healthz", 200],
  ["/v1/models", 200],
  ["/v1/models?limit=1000", 200],
])("HEAD %s of a program without a key is answered %d", async (path, status) => {
  const answer = await head(path);
  expect(answer.status).toBe(status);
  expect(answer.headers.get("location")).toBeNull();
  expect(answer.headers.get("set-cookie")).toBeNull();
  expect(answer.headers.get("x-service-trace-id")).toMatch(/^[0-9a-f]{32}$/);
  expect(await answer.text()).toBe("");
});

test("GET / still leads people to sign in", async () => {
  const answer = await fetch(gateway.origin, { redirect: "manual" });
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/sign-in"]);
});

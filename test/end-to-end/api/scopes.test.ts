import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Scope } from "../../../src/identity/keys/scopes.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { seedStorage, type SeededStorage } from "./seed-storage.ts";

const workspaceId = "ws_scopes";
const secretOf = (scope: Scope): string =>
  `ak_live_only_${scope.replace(":", "_")}_0123456789abcdef`;

/** Management keys with one scope each, and what each may do with it alone. */
const rows: readonly [only: Scope, allowed: string[]][] = [
  ["write:llm-keys", ["POST /keys", "GET /keys", "GET /key"]],
  ["read:llm-keys", ["GET /keys", "GET /key"]],
  ["read:credits", ["GET /credits"]],
  ["write:presets", ["GET /presets", "POST /presets"]],
  ["read:presets", ["GET /presets"]],
  ["write:management-keys", ["GET /management-keys", "POST /management-keys"]],
  ["read:management-keys", ["GET /management-keys"]],
  ["inference", []],
];
const requests = [
  "POST /keys",
  "GET /keys",
  "GET /key",
  "GET /credits",
  "GET /presets",
  "POST /presets",
  "GET /management-keys",
  "POST /management-keys",
];
/** A body that a creation takes; the one scope that is granted is one that its maker holds. */
const bodyFor = (path: string, scope: Scope): string =>
  JSON.stringify({
    name: "k",
    ...(path === "/presets" ? { slug: "s", config: {} } : {}),
    ...(path === "/management-keys" ? { scopes: [scope] } : {}),
  });

let storage: SeededStorage;
let gateway: TestGateway;
beforeAll(async () => {
  storage = await seedStorage({
    workspaces: [{ id: workspaceId }],
    managementKeys: rows.map(([scope]) => ({
      secret: secretOf(scope),
      workspaceId,
      scopes: [scope],
    })),
  });
  gateway = await startGateway(storage.settings);
});
afterAll(async () => {
  await gateway.stop();
  storage.remove();
});

test.each(rows)("a key with only %s may call %j", async (scope, allowed) => {
  for (const request of requests) {
    const [method = "", path = ""] = request.split(" ");
    const response = await fetch(gateway.baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${secretOf(scope)}` },
      ...(method === "POST" ? { body: bodyFor(path, scope) } : {}),
    });
    expect([request, response.status]).toEqual([request, allowed.includes(request) ? 200 : 403]);
  }
});

test("the inference scope of a management key does not allow inference and returns 401", async () => {
  const response = await gateway.post(
    "/chat/completions",
    {},
    { headers: { authorization: `Bearer ${secretOf("inference")}` } },
  );
  expect(response.status).toBe(401);
});

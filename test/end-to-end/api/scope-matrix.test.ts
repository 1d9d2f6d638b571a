import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { coversScope, scopes, type Scope } from "../../../src/identity/keys/scopes.ts";
import { endpoints } from "../../../src/endpoints/index.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { at } from "./at.ts";
import { bootstrapWith } from "./bootstrap-with.ts";
import { contract, type ContractRow } from "./credential-contract.ts";
import { seedStorage, type SeededStorage } from "./seed-storage.ts";
import { roles, scopesOf } from "../../../src/identity/people/roles.ts";

const workspaceId = "ws_scope_matrix";
const secretOf = (scope: Scope): string =>
  `ak_live_matrix_${scope.replace(":", "_")}_0123456789abcdef`;

let storage: SeededStorage;
let gateway: TestGateway;
beforeAll(async () => {
  storage = await seedStorage({
    workspaces: [{ id: workspaceId }],
    llmKeys: [{ secret: "sk-svc-v1-matrix-0123456789abcdef0123456789", workspaceId }],
    managementKeys: scopes.map((scope) => ({
      secret: secretOf(scope),
      workspaceId,
      scopes: [scope],
    })),
  });
  gateway = await startGateway({
    ...storage.settings,
    bootstrap: { ...bootstrapWith({}), llmKey: undefined, managementKey: undefined },
  });
});
afterAll(async () => {
  await gateway.stop();
  storage.remove();
});

/** Every route that needs a scope. */
const scoped = Object.entries(contract).filter(
  (entry): entry is [string, ContractRow & { scope: Scope }] => entry[1].scope !== undefined,
);

async function ask(
  name: string,
  { path }: ContractRow,
  secret: string,
): Promise<{ status: number; required: unknown }> {
  const [method = "", pattern = ""] = name.split(" ");
  const response = await fetch(gateway.baseUrl + (path ?? pattern), {
    method,
    headers: { authorization: `Bearer ${secret}` },
    ...(method === "GET" ? {} : { body: "{}" }),
  });
  const text = await response.text();
  const required =
    response.status === 403 ? at(JSON.parse(text), "error.metadata.required_scope") : undefined;
  return { status: response.status, required };
}

describe.each(scopes.map((scope) => [scope]))("a management key with only %s", (scope) => {
  test.each(scoped)("at %s", async (name, row) => {
    const wanted = coversScope([scope], row.scope)
      ? { status: row.accepted ?? 200, required: undefined }
      : { status: 403, required: row.scope };
    expect(await ask(name, row, secretOf(scope))).toEqual(wanted);
  });
});

/** Contract, table "Scopes": what each scope grants, and what the service adds to it. */
const granted: Partial<Record<Scope, readonly string[]>> = {
  "read:llm-keys": ["GET /keys", "GET /keys/:hash", "GET /key"],
  "write:llm-keys": [
    "POST /keys",
    "PATCH /keys/:hash",
    "DELETE /keys/:hash",
    "POST /keys/:hash/rotate",
  ],
  "read:presets": ["GET /presets", "GET /presets/:slug"],
  "write:presets": ["POST /presets", "PATCH /presets/:slug", "DELETE /presets/:slug"],
  "read:byok": ["GET /auth/byok"],
  "write:byok": [
    "POST /auth/byok",
    "PATCH /auth/byok/keys/:key_id",
    "DELETE /auth/byok/keys/:key_id",
    "POST /byok/donated",
    "DELETE /byok/donated/:id",
  ],
  "read:credits": ["GET /credits"],
  "read:analytics": [
    "GET /analytics/usage",
    "GET /analytics/usage/parts",
    "GET /analytics/activity",
    "GET /analytics/generations",
    "GET /analytics/spend",
  ],
  "read:management-keys": ["GET /management-keys"],
  "write:management-keys": ["POST /management-keys", "DELETE /management-keys/:id"],
  "read:security": ["GET /security/keys", "GET /security/ip-allowlist", "GET /security/audit"],
  "write:security": ["POST /security/ip-allowlist", "DELETE /security/ip-allowlist/:id"],
};

test.each(Object.entries(granted))("scope %s grants the documented routes", (scope, names) => {
  const declared = endpoints
    .filter(({ access }) => access.managementScope === scope)
    .map(({ method, path }) => `${method} ${path}`);
  expect(declared).toEqual(expect.arrayContaining([...names]));
});

test("no scope allows writing analytics or calling an inference route", () => {
  const writing = endpoints.filter(
    ({ method, path }) => method !== "GET" && path.startsWith("/analytics/"),
  );
  expect(writing).toEqual([]);
  const inference = endpoints.filter(({ counting }) => counting === "by-handler");
  // Only one that sends nothing and spends nothing.
  expect(
    inference
      .filter(({ access }) => access.managementScope !== undefined || access.session)
      .map(({ path }) => path),
  ).toEqual(["/routing/explain"]);
});

test("roles have only documented scopes, and members no security or management key scopes", () => {
  for (const role of roles)
    expect(scopesOf(role).every((scope) => scopes.includes(scope))).toBe(true);
  for (const scope of [
    "write:byok",
    "read:management-keys",
    "write:management-keys",
    "read:security",
    "write:security",
  ] as const) {
    expect([scope, coversScope(scopesOf("member"), scope)]).toEqual([scope, false]);
  }
});

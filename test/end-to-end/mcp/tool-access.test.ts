import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { coversScope, scopes, type Scope } from "../../../src/identity/keys/scopes.ts";
import { bundles } from "../../../src/consent/granted-scopes.ts";
import { endpoints } from "../../../src/endpoints/index.ts";
import { tools } from "../../../src/mcp/tools/index.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { at } from "../api/at.ts";
import { bootstrapWith } from "../api/bootstrap-with.ts";
import { seedStorage, type SeededStorage } from "../api/seed-storage.ts";
import { engines } from "../api/two-workspaces.ts";
import { rpc, sendMcp } from "./mcp-client.ts";
import { toolContract, type ToolRow } from "./tool-contract.ts";

const long = (name: string): string =>
  `${name.replaceAll(":", "_")}_0123456789abcdef0123456789abcdef`;

/** A credential of the matrix, and what it may use. */
interface Family {
  secret: string;
  /** The scopes that it holds; undefined where it is refused at the door. */
  scopes: readonly Scope[] | undefined;
  operator?: true;
}

const [firstId, otherId] = ["ws_first", "ws_other"];
const connections: Record<string, readonly Scope[]> = {
  read_only: bundles.read_only,
  standard: bundles.standard,
  ...Object.fromEntries(scopes.map((scope) => [`only_${scope}`, [scope]])),
};

const families: Record<string, Family> = {
  "an LLM key": { secret: long("sk-svc-v1-llm"), scopes: [] },
  "an LLM key of the first workspace": { secret: long("sk-svc-v1-first"), scopes: [] },
  ...Object.fromEntries(
    Object.entries(connections).map(([name, held]) => [
      `a connected app with ${name}`,
      { secret: long(`sk-svc-at-${name}`), scopes: held },
    ]),
  ),
  "a connected app with an expired token": {
    secret: long("sk-svc-at-expired"),
    scopes: undefined,
  },
  "a disabled LLM key": { secret: long("sk-svc-v1-disabled"), scopes: undefined },
  "a revoked or unknown LLM key": { secret: long("sk-svc-v1-unknown"), scopes: undefined },
  ...Object.fromEntries(
    scopes.map((scope) => [
      `a management key with ${scope}`,
      { secret: long(`ak_live_${scope}`), scopes: [scope] },
    ]),
  ),
  "a management key of another workspace with all scopes": {
    secret: long("ak_live_other"),
    scopes,
  },
  "an operators' management key": { secret: long("ak_live_operator"), scopes, operator: true },
  "an operators' management key without the operators' scope": {
    secret: long("ak_live_without"),
    scopes: scopes.filter((scope) => scope !== "write:management-keys"),
  },
  "an expired management key": { secret: long("ak_live_expired"), scopes: undefined },
};

let storage: SeededStorage;
let gateway: TestGateway;
describe.each(engines)("credentials and tools on %s", (_engine, freshUrl) => {
  beforeAll(async () => {
    const secretOf = (name: string): string => families[name]?.secret ?? "";
    storage = await seedStorage(
      {
        workspaces: [{ id: firstId }, { id: otherId }],
        llmKeys: [
          { secret: secretOf("an LLM key"), workspaceId: otherId },
          { secret: secretOf("an LLM key of the first workspace"), workspaceId: firstId },
          { secret: secretOf("a disabled LLM key"), workspaceId: firstId, disabled: true },
          ...Object.entries(connections).map(([name, held]) => ({
            secret: secretOf(`a connected app with ${name}`),
            workspaceId: firstId,
            connection: { id: `con_${name}`, scopes: held, tokenExpiresAtMs: null },
          })),
          {
            secret: secretOf("a connected app with an expired token"),
            workspaceId: firstId,
            connection: { id: "con_expired", scopes: bundles.standard, tokenExpiresAtMs: 1 },
          },
        ],
        managementKeys: [
          ...scopes.map((scope) => ({
            secret: secretOf(`a management key with ${scope}`),
            workspaceId: otherId,
            scopes: [scope],
          })),
          {
            secret: secretOf("a management key of another workspace with all scopes"),
            workspaceId: otherId,
          },
          { secret: secretOf("an operators' management key"), workspaceId: firstId },
          {
            secret: secretOf("an operators' management key without the operators' scope"),
            workspaceId: firstId,
            scopes: [
              ...(families["an operators' management key without the operators' scope"]?.scopes ??
                []),
            ],
          },
          { secret: secretOf("an expired management key"), workspaceId: firstId, expiresAtMs: 1 },
        ],
      },
      await freshUrl(),
    );
    gateway = await startGateway({
      ...storage.settings,
      sandbox: true,
      trustProxy: true,
      bootstrap: { ...bootstrapWith({}), llmKey: undefined, managementKey: undefined },
    });
  });
  afterAll(async () => {
    await gateway.stop();
    storage.remove();
  });

  const mayUse = (
    { scope, operators }: ToolRow,
    { scopes: held = [], operator, secret }: Family,
  ): boolean => {
    if (operators) return operator === true;
    // LLM keys need no scope for inference, and management keys cannot use it.
    if (scope === "inference" && !secret.startsWith("sk-svc-at-"))
      return secret.startsWith("sk-svc-v1-");
    return scope === null || coversScope(held, scope);
  };

  let addresses = 0;
  /** Each family comes from an address of its own, so that none meets the limit of another. */
  const nextAddress = (): Record<string, string> => ({
    "x-forwarded-for": `203.0.113.${(addresses += 1)}`,
    "x-forwarded-proto": "https",
  });

  describe.each(Object.entries(families))("%s", (_, family) => {
    const headers = nextAddress();
    const send = (message: unknown) =>
      sendMcp(`${gateway.baseUrl}/mcp`, message, { secret: family.secret, headers });

    test("sees exactly the tools that it may use", async () => {
      const { status, body } = await send(rpc("tools/list"));
      if (family.scopes === undefined) {
        expect([status, at(body, "error.code"), at(body, "result")]).toEqual([
          401,
          -32001,
          undefined,
        ]);
        return;
      }
      const listed = at(body, "result.tools");
      const names = Array.isArray(listed) ? listed.map((tool: unknown) => at(tool, "name")) : [];
      if (Array.isArray(listed))
        for (const tool of listed) expect(tool).toMatchObject({ outputSchema: { type: "object" } });
      expect(names).toEqual(
        Object.keys(toolContract).filter((name) =>
          mayUse(toolContract[name] ?? { scope: null }, family),
        ),
      );
    });

    test.each(Object.entries(toolContract))("calling %s", async (name, row) => {
      const { status, body } = await send(rpc("tools/call", { name, arguments: row.given ?? {} }));
      if (family.scopes === undefined) {
        expect([status, at(body, "error")]).toEqual([
          401,
          { code: -32001, message: "Unauthorized" },
        ]);
        return;
      }
      expect(status).toBe(200);
      if (row.operators && !family.operator) {
        // Hidden, so that it is as unknown as any other name.
        expect(at(body, "error.code")).toBe(-32602);
        return;
      }
      expect(at(body, "error")).toBeUndefined();
      const denied = String(at(body, "result.content.0.text")).startsWith("Permission denied");
      expect(denied).toBe(!mayUse(row, family));
      if (denied) expect(at(body, "result.isError")).toBe(true);
      else if (
        !row.refused &&
        !["create_key", "revoke_key", "admin_get_user", "admin_grant_credits"].includes(name)
      ) {
        expect([at(body, "result.isError"), at(body, "result.content.0.text")]).toEqual([
          undefined,
          expect.any(String),
        ]);
      }
    });
  });

  test("without a credential no tool is listed or called", async () => {
    for (const message of [
      rpc("tools/list"),
      ...Object.keys(toolContract).map((name) => rpc("tools/call", { name, arguments: {} })),
    ]) {
      const { status, body } = await sendMcp(`${gateway.origin}/mcp`, message, {
        headers: { "x-forwarded-proto": "https" },
      });
      expect([status, body]).toEqual([
        401,
        { jsonrpc: "2.0", error: { code: -32001, message: "Unauthorized" }, id: null },
      ]);
    }
  });

  test("invalid arguments are named: missing, misspelt or of another type", async () => {
    const operators = families["an operators' management key"]?.secret ?? "";
    const llmKey = families["an LLM key"]?.secret ?? "";
    const refusal = async (name: string, given: Record<string, unknown>): Promise<string> => {
      const secret = toolContract[name]?.scope === "inference" ? llmKey : operators;
      const { body } = await sendMcp(
        `${gateway.baseUrl}/mcp`,
        rpc("tools/call", { name, arguments: given }),
        {
          secret,
          headers: { "x-forwarded-for": "198.51.100.1", "x-forwarded-proto": "https" },
        },
      );
      expect(at(body, "result.isError")).toBe(true);
      return String(at(body, "result.content.0.text"));
    };
    for (const [name, { required = [], given = {} }] of Object.entries(toolContract)) {
      for (const field of required) {
        const { [field]: _, ...others } = given;
        expect([name, await refusal(name, others)]).toEqual([
          name,
          expect.stringMatching(new RegExp(`^${field}: `)),
        ]);
      }
    }
    expect(await refusal("list_models", { limt: 3 })).toContain("did you mean limit?");
    expect(await refusal("list_models", { limit: 0 })).toBe("limit: must be at least 1");
    expect(await refusal("list_models", { sort: "name" })).toBe("sort: must be price or context");
    expect(await refusal("get_usage", { days: 91 })).toBe("days: must be at most 90");
  });

  test("every tool has a row in this table with the same scope, and every row a tool", () => {
    const shown = ({ scope, operators }: Pick<ToolRow, "scope" | "operators">) => ({
      scope,
      operators: operators === true,
    });
    const declared = Object.fromEntries(tools.map((tool) => [tool.name, shown(tool)]));
    expect(declared).toEqual(
      Object.fromEntries(Object.entries(toolContract).map(([name, row]) => [name, shown(row)])),
    );
  });

  test("a tool's endpoint exists and requires the tool's own scope", () => {
    for (const { name, scope, operators, endpoint: wanted } of tools) {
      if (wanted === undefined) continue;
      const endpoint = endpoints.find(
        ({ method, path, base }) => base === "api" && `${method} ${path}` === wanted,
      );
      expect([name, endpoint === undefined]).toEqual([name, false]);
      // An agent's LLM key asks for its run; the endpoint requires the scope of other credentials.
      const isForAgents = name === "get_run" && endpoint?.access.llmKey === true;
      const isInference = scope === "inference" && endpoint?.access.llmKey === true;
      const needed = isInference ? "inference" : endpoint?.access.managementScope;
      const needs =
        isForAgents || endpoint?.access.anonymous || endpoint?.access.open ? null : needed;
      expect([name, needs]).toEqual([name, operators ? "write:management-keys" : scope]);
    }
  });
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { at } from "../api/at.ts";
import { toolContract } from "./tool-contract.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
});
afterAll(() => gateway.stop());

const who = { name: "test", version: "1" };
const requestInit = { headers: { authorization: `Bearer ${testManagementKey}` } };
const url = (): URL => new URL("/mcp", gateway.origin);

/** Both generations of the SDK's client, which check results against the output schemas that tools declare. */
const clients: Record<string, () => Promise<{
  names(): Promise<string[]>; call(name: string, given: Record<string, unknown>): Promise<unknown>; close(): Promise<void>;
}>> = {
  async "SDK 1.x"() {
    const client = new Client(who);
    // The package's own types disagree about a session id under exactOptionalPropertyTypes.
    await client.connect(new StreamableHTTPClientTransport(url(), { requestInit }) as Parameters<Client["connect"]>[0]);
    return {
      names: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: (name, given) => client.callTool({ name, arguments: given }), close: () => client.close(),
    };
  },
  async "SDK 2.x"() {
    const client = new ModernClient(who);
    await client.connect(new ModernTransport(url(), { requestInit }));
    return {
      names: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: (name, given) => client.callTool({ name, arguments: given }), close: () => client.close(),
    };
  },
};

test.each(Object.entries(clients))("%s lists every tool, and calls each with a result that fits its schema", async (_, open) => {
  const client = await open();
  expect(await client.names()).toEqual(Object.keys(toolContract));
  for (const [name, { given = {}, scope }] of Object.entries(toolContract)) {
    if (scope === "write:llm-keys" || name === "admin_get_user" || name === "admin_grant_credits") continue;
    const result = await client.call(name, given);
    expect([name, at(result, "isError"), typeof at(result, "structuredContent")]).toEqual([name, undefined, "object"]);
  }
  const made = await client.call("create_key", { name: "by the SDK" });
  const keyId = at(made, "structuredContent.data.id");
  expect(at(await client.call("revoke_key", { key_id: keyId }), "structuredContent")).toEqual({ deleted: true, id: keyId });
  expect(at(await client.call("revoke_key", { key_id: "key_none" }), "isError")).toBe(true);
  await client.close();
}, 60_000);

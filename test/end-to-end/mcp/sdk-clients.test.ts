import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { jsonSchemaValidator } from "../../support/kept-validators.ts";
import { startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { at } from "../api/at.ts";
import { isForManagementKeys, toolContract } from "./tool-contract.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
});
afterAll(() => gateway.stop());

const who = { name: "test", version: "1" };
const requestInit = { headers: { authorization: `Bearer ${testManagementKey}` } };
const url = (): URL => new URL("/mcp", gateway.origin);

/**
 * Both generations of the SDK's client, which check results against the output schemas that tools
 * declare.
 */
const clients: Record<
  string,
  () => Promise<{
    names(): Promise<string[]>;
    call(name: string, given: Record<string, unknown>): Promise<unknown>;
    close(): Promise<void>;
  }>
> = {
  async "SDK 1.x"() {
    const client = new Client(who, { jsonSchemaValidator });
    // The package's own types disagree about a session id under exactOptionalPropertyTypes.
    await client.connect(
      new StreamableHTTPClientTransport(url(), { requestInit }) as Parameters<Client["connect"]>[0],
    );
    return {
      names: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: (name, given) => client.callTool({ name, arguments: given }),
      close: () => client.close(),
    };
  },
  async "SDK 2.x"() {
    const client = new ModernClient(who);
    await client.connect(new ModernTransport(url(), { requestInit }));
    return {
      names: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: (name, given) => client.callTool({ name, arguments: given }),
      close: () => client.close(),
    };
  },
};

test.each(Object.entries(clients))(
  "%s lists every tool, and every result matches its schema",
  async (_, open) => {
    const client = await open();
    const rows = Object.entries(toolContract).filter(([, row]) => isForManagementKeys(row));
    expect(await client.names()).toEqual(rows.map(([name]) => name));
    for (const [name, { given = {}, scope, refused }] of rows) {
      if (
        refused ||
        scope === "write:llm-keys" ||
        name === "admin_get_user" ||
        name === "admin_grant_credits"
      )
        continue;
      const result = await client.call(name, given);
      expect([name, at(result, "isError"), typeof at(result, "structuredContent")]).toEqual([
        name,
        undefined,
        "object",
      ]);
    }
    const made = await client.call("create_key", { name: "by the SDK" });
    const keyId = at(made, "structuredContent.data.id");
    expect(at(await client.call("revoke_key", { key_id: keyId }), "structuredContent")).toEqual({
      deleted: true,
      id: keyId,
    });
    expect(at(await client.call("revoke_key", { key_id: "key_none" }), "isError")).toBe(true);
    const document = (name: string): string => `---\nname: ${name}\ndescription: d\n---\n`;
    const hub = at(
      await client.call("create_hub", { name: "By the SDK" }),
      "structuredContent.slug",
    );
    const prompt = await client.call("publish_prompt", {
      title: "t",
      description: "d",
      body: "b",
      category: "c",
    });
    const promptId = at(prompt, "structuredContent.id");
    for (const [name, given] of [
      ["star_prompt", { prompt_id: promptId }],
      ["fork_prompt", { prompt_id: promptId }],
      ["publish_skill", { body: document("one"), hub }],
      ["hub_add_item", { hub, body: "# Two" }],
      ["hub_add_item", { hub, body: "three", kind: "prompt" }],
      ["hub_import_skill", { hub, source_ref: `${String(hub)}/one` }],
      ["get_hub", { slug: hub }],
      ["list_hubs", {}],
    ] as const) {
      expect([
        name,
        typeof at(await client.call(name, given), "structuredContent.id") === "string",
      ]).toEqual([name, name !== "list_hubs"]);
    }
    await client.close();
  },
  240_000,
);

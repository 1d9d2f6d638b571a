import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { jsonSchemaValidator } from "../../support/kept-validators.ts";
import { testManagementKey } from "../../support/gateway.ts";
import { at, listAt, textAt } from "../api/at.ts";
import type { PeopledGateway } from "../api/people-browser.ts";
import { skillDocument } from "../hub/hub-scene.ts";
import { freePort } from "../process/support/ports.ts";
import { approveAt, firstMatch, startPeopledMcp } from "./conformance/peopled-mcp.ts";
import { missingProgram, runProgram, startProgram } from "./conformance/protocol-programs.ts";
import { isForManagementKeys, toolContract } from "./tool-contract.ts";

const missing = missingProgram("inspector");

/** Calls a tool; returns its structured result, and throws where it fails. */
type CallTool = (name: string, given?: Record<string, unknown>) => Promise<unknown>;

describe.skipIf(missing !== undefined)(
  `the Inspector's CLI${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    let people: PeopledGateway;
    const folder = mkdtempSync(join(tmpdir(), "switchyard-inspector-"));
    /** A home without a token, which the Inspector would send in place of a header. */
    const keysFolder = mkdtempSync(join(tmpdir(), "switchyard-inspector-"));
    const withKey = ["--header", `Authorization: Bearer ${testManagementKey}`];
    const withToken = ["--stored-auth-only"];
    const parameters = (...more: string[]): string[] => [
      "--cli",
      `${people.gateway().origin}/mcp`,
      "--transport",
      "http",
      "--format",
      "json",
      ...more,
    ];

    beforeAll(async () => {
      people = await startPeopledMcp();
      // The only way in without a key: it registers itself, names the page of consent, and waits
      // for the code.
      const variables = {
        MCP_AUTO_OPEN_ENABLED: "true",
        BROWSER: "true",
        MCP_INSPECTOR_SECRET_STORE: "file",
      };
      const callback = `http://127.0.0.1:${freePort()}/oauth/callback`;
      const child = startProgram(
        "inspector",
        parameters("--callback-url", callback, "--method", "tools/list"),
        { folder, variables },
      );
      const { match } = await firstMatch(child.stderr, /https?:\S+\/authorize\?\S+(?=\s)/);
      expect((await approveAt(people.owner, match, { bundle: "standard" })).status).toBe(200);
      expect(await child.exited).toBe(0);
    }, 240_000);
    afterAll(async () => {
      await people.stop();
      for (const each of [folder, keysFolder]) rmSync(each, { recursive: true, force: true });
    });

    const run = async (...more: string[]): Promise<unknown> => {
      const variables = { MCP_INSPECTOR_SECRET_STORE: "file" };
      const place = { folder: more.includes("--header") ? keysFolder : folder, variables };
      const { exitCode, output, errorOutput } = await runProgram(
        "inspector",
        parameters(...more),
        place,
      );
      if (exitCode !== 0) throw new Error(`exit code ${exitCode}: ${errorOutput}`);
      return at(JSON.parse(output), "result");
    };
    const call = async (
      credential: string[],
      name: string,
      given: Record<string, unknown> = {},
    ): Promise<unknown> =>
      at(
        await run(
          ...credential,
          "--method",
          "tools/call",
          "--tool-name",
          name,
          "--tool-args-json",
          JSON.stringify(given),
        ),
        "structuredContent",
      );

    /** Calls that need what others made, in their order; gives the tools that they called. */
    async function callWritingTools(call: CallTool, hub: string): Promise<string[]> {
      const called: string[] = [];
      const step = (name: string, given: Record<string, unknown>): Promise<unknown> => {
        called.push(name);
        return call(name, given);
      };
      const key = await step("create_key", { name: hub });
      expect(await step("revoke_key", { key_id: textAt(key, "data.id") })).toMatchObject({
        deleted: true,
      });
      expect(await step("create_hub", { name: hub })).toMatchObject({ slug: hub });
      const prompt = await step("publish_prompt", {
        title: hub,
        description: "d",
        body: "b",
        category: "c",
      });
      for (const name of ["star_prompt", "fork_prompt"])
        await step(name, { prompt_id: textAt(prompt, "id") });
      await step("publish_skill", { body: skillDocument("one"), hub });
      await step("hub_add_item", { hub, body: "# Two" });
      await step("hub_import_skill", { hub, source_ref: `${hub}/one` });
      expect(await step("get_hub", { slug: hub })).toMatchObject({ item_count: 3 });
      return called;
    }

    /** Calls tools as the Inspector does, with the client that it is made of, in this process. */
    async function callerWithKey(): Promise<{ call: CallTool; close(): Promise<void> }> {
      const client = new Client({ name: "agent", version: "1" }, { jsonSchemaValidator });
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${people.gateway().origin}/mcp`), {
          requestInit: { headers: { authorization: `Bearer ${testManagementKey}` } },
        }),
      );
      await client.listTools();
      return {
        async call(name, given = {}) {
          const result = await client.callTool({ name, arguments: given });
          if (result.isError) throw new Error(`${name} failed: ${JSON.stringify(result.content)}`);
          return result.structuredContent;
        },
        close: () => client.close(),
      };
    }

    /** The tools that a management key sees. */
    const keysTools = Object.entries(toolContract)
      .filter(([, row]) => isForManagementKeys(row))
      .map(([name]) => name);
    const operatorTools = Object.keys(toolContract).filter((name) => toolContract[name]?.operators);
    const otherTools = Object.keys(toolContract).filter((name) => !toolContract[name]?.operators);

    test.each(["legacy", "modern"])(
      "lists every tool with a key, with portable schemas (%s)",
      async (era) => {
        const listed = await run(
          ...withKey,
          "--protocol-era",
          era,
          "--method",
          "tools/list",
          "--strict",
        );
        expect(listAt(listed, "tools").map((tool) => at(tool, "name"))).toEqual(keysTools);
        const resources = await run(
          ...withKey,
          "--protocol-era",
          era,
          "--method",
          "resources/list",
        );
        expect(listAt(resources, "resources").length).toBeGreaterThan(0);
      },
    );

    test("calls tools of each kind with a key", async () => {
      const key = await call(withKey, "create_key", { name: "by the program" });
      expect(await call(withKey, "revoke_key", { key_id: textAt(key, "data.id") })).toMatchObject({
        deleted: true,
      });
      const modern = [...withKey, "--protocol-era", "modern"];
      const users = await call(modern, "admin_list_users");
      const grant = {
        user_id: textAt(users, "data.0.id"),
        amount: 1,
        description: "test",
        confirm: true,
        idempotency_key: "inspector",
      };
      expect(await call(modern, "admin_grant_credits", grant)).toMatchObject({ amount: 1 });
      // The key is that of no run, so there is nothing that could be left.
      await expect(call(withKey, "get_run")).rejects.toThrow("exit code");
    }, 600_000);

    // The program takes a second for each call; what it checks of a result is what its client checks.
    test("calls every tool with a key by the program's client", async () => {
      const { call: callTool, close } = await callerWithKey();
      const called = await callWritingTools(callTool, "by-key");
      const userId = textAt(await callTool("admin_list_users"), "data.0.id");
      expect(await callTool("admin_get_user", { user_id: userId })).toMatchObject({ id: userId });
      for (const [name, given] of [
        ["get_run", undefined],
        ["get_customer", { id: "none" }],
        ["get_team", { id: "none" }],
        ["get_alias", { name: "none" }],
      ] as const) {
        await expect(callTool(name, given)).rejects.toThrow(`${name} failed`);
        called.push(name);
      }
      called.push("admin_get_user", "admin_grant_credits");
      for (const name of keysTools.filter((each) => !called.includes(each)))
        expect(typeof (await callTool(name, toolContract[name]?.given))).toBe("object");
      await close();
    }, 240_000);

    test("lists the tools of an OAuth token, calls one that writes and one that reads, and none of operators", async () => {
      const listed = await run(...withToken, "--method", "tools/list");
      expect(listAt(listed, "tools").map((tool) => at(tool, "name"))).toEqual(otherTools);
      expect(await call(withToken, "create_hub", { name: "by-token" })).toMatchObject({
        slug: "by-token",
      });
      const modern = [...withToken, "--protocol-era", "modern"];
      expect(typeof (await call(modern, "get_credits"))).toBe("object");
      for (const name of operatorTools.slice(0, 1))
        await expect(call(withToken, name)).rejects.toThrow("exit code");
    }, 600_000);
  },
);

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, testLlmKey, type TestGateway } from "../../../support/gateway.ts";
import {
  startMcpUpstream,
  textTool,
  type McpUpstream,
} from "../../../support/mcp-upstream/mcp-upstream.ts";
import { at, listAt } from "../../api/at.ts";
import { missingProgram, runProgram } from "../conformance/protocol-programs.ts";

const missing = missingProgram("inspector");

describe.skipIf(missing !== undefined)(
  `the Inspector's CLI on joined servers${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    let gateway: TestGateway;
    const upstreams: McpUpstream[] = [];
    const folder = mkdtempSync(join(tmpdir(), "switchyard-inspector-"));
    beforeAll(async () => {
      upstreams.push(
        startMcpUpstream([textTool("search", () => "found"), textTool("x".repeat(80))]),
        startMcpUpstream([textTool("search", () => "looked up")]),
      );
      gateway = await startGateway({
        mcp: {
          servers: ["docs", "wiki"].map((id, index) => ({
            id,
            name: id,
            target: { transport: "streamable_http", url: upstreams[index]?.url ?? "" },
            auth: { type: "none" },
            allowedTools: null,
            priceNanoUsd: 0n,
            timeoutMs: undefined,
            resultBytesMax: undefined,
          })),
          allowedNetworks: [],
          maxRounds: 4,
        },
      });
    }, 240_000);
    afterAll(async () => {
      await gateway.stop();
      for (const upstream of upstreams) await upstream.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const run = async (...parameters: string[]): Promise<unknown> => {
      const all = ["--cli", `${gateway.origin}/mcp/all`, "--transport", "http"];
      const key = ["--format", "json", "--header", `Authorization: Bearer ${testLlmKey}`];
      const place = { folder, variables: { MCP_INSPECTOR_SECRET_STORE: "file" } };
      const ran = await runProgram("inspector", [...all, ...key, ...parameters], place);
      if (ran.exitCode !== 0) throw new Error(`exit code ${ran.exitCode}: ${ran.errorOutput}`);
      return at(JSON.parse(ran.output), "result");
    };

    test.each(["legacy", "modern"])(
      "lists and calls the tools of both (%s)",
      async (era) => {
        const listed = await run("--protocol-era", era, "--method", "tools/list", "--strict");
        const names = listAt(listed, "tools").map((tool) => String(at(tool, "name")));
        expect(names).toEqual([
          "docs__search",
          expect.stringMatching(/^docs__x+_[0-9a-f]{10}$/),
          "wiki__search",
        ]);
        const call = ["--method", "tools/call", "--tool-name", "wiki__search"];
        const result = await run("--protocol-era", era, ...call, "--tool-args-json", "{}");
        expect(at(result, "content.0.text")).toBe("looked up");
      },
      240_000,
    );
  },
);

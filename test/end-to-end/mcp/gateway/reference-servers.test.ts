import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { startGateway, testLlmKey, type TestGateway } from "../../../support/gateway.ts";
import { pollUntil } from "../../../support/poll-until.ts";
import { at } from "../../api/at.ts";
import { testClientsFolder } from "../../clients/support/test-clients-folder.ts";
import { freePort } from "../../process/support/ports.ts";

const packages = join(testClientsFolder, "mcp-servers", "node_modules", "@modelcontextprotocol");
const program = (name: string): string => join(packages, name, "dist", "index.js");
const isMissing = !existsSync(program("server-everything"));

describe.skipIf(isMissing)(
  `the protocol's reference servers${isMissing ? " (missing: scripts/install-test-clients.mjs)" : ""}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), "switchyard-reference-"));
    let gateway: TestGateway;
    let everything: ReturnType<typeof Bun.spawn>;
    beforeAll(async () => {
      writeFileSync(join(folder, "note.txt"), "a note");
      const port = await freePort();
      const path = process.env["PATH"] ?? "";
      everything = Bun.spawn(["node", program("server-everything"), "streamableHttp"], {
        env: { PATH: path, PORT: String(port) },
        stdout: "ignore",
        stderr: "ignore",
      });
      const limits = {
        auth: { type: "none" as const },
        allowedTools: null,
        priceNanoUsd: 0n,
        timeoutMs: undefined,
        resultBytesMax: undefined,
      };
      const stdio = (args: string[]) =>
        ({ transport: "stdio", command: "node", args, env: { PATH: path } }) as const;
      const url = `http://127.0.0.1:${port}/mcp`;
      gateway = await startGateway({
        mcp: {
          servers: [
            { ...limits, id: "http", name: "http", target: { transport: "streamable_http", url } },
            {
              ...limits,
              id: "files",
              name: "files",
              target: stdio([program("server-filesystem"), folder]),
            },
          ],
          allowedNetworks: [],
          maxRounds: 4,
        },
      });
      await pollUntil(() =>
        fetch(url).then(
          () => true,
          () => false,
        ),
      );
    }, 240_000);
    afterAll(async () => {
      await gateway.stop();
      everything.kill();
      rmSync(folder, { recursive: true, force: true });
    });

    test.each(["auto", "legacy"] as const)(
      "are called over HTTP and stdio, with progress (%s)",
      async (mode) => {
        const client = new Client(
          { name: "agent", version: "1" },
          { versionNegotiation: { mode } },
        );
        await client.connect(
          new StreamableHTTPClientTransport(new URL(`${gateway.origin}/mcp/all`), {
            requestInit: { headers: { authorization: `Bearer ${testLlmKey}` } },
          }),
        );
        const echoed = await client.callTool({ name: "http__echo", arguments: { message: "hi" } });
        expect(at(echoed, "content.0.text")).toBe("Echo: hi" as never);
        const read = await client.callTool({
          name: "files__read_text_file",
          arguments: { path: join(folder, "note.txt") },
        });
        expect(at(read, "content.0.text")).toBe("a note" as never);
        const outside = await client.callTool({
          name: "files__read_text_file",
          arguments: { path: "/etc/hostname" },
        });
        expect(outside.isError).toBe(true);
        const progress: number[] = [];
        await client.callTool(
          {
            name: "http__trigger-long-running-operation",
            arguments: { duration: 0.3, steps: 3 },
          },
          { onprogress: (step) => void progress.push(step.progress) },
        );
        expect(progress).toEqual([1, 2, 3]);
        await client.close();
      },
      30_000,
    );
  },
);

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "bun:test";
import { startGateway, testManagementKey, type TestGateway } from "../../../support/gateway.ts";
import { buildFixtureServer } from "./fixture-server.ts";
import { missingProgram, runProgram } from "./protocol-programs.ts";
import { scenarios } from "./scenarios.ts";

const missing = missingProgram("conformance");

/** What came of a scenario, by its name. */
type Results = ReadonlyMap<string, { passed: number; failed: number }>;

/** Passes requests on to a gateway with a credential, which the suite's requests have none of. */
const withCredential = (gateway: TestGateway) =>
  Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const headers = new Headers(request.headers);
      headers.set("authorization", `Bearer ${testManagementKey}`);
      const body = request.method === "POST" ? await request.arrayBuffer() : undefined;
      const answer = await fetch(gateway.origin + pathname, {
        method: request.method,
        headers,
        body,
        signal: request.signal,
      });
      return new Response(answer.body, { status: answer.status, headers: answer.headers });
    },
  });

/** Runs every scenario of a revision against a gateway. */
async function resultsOf(
  gateway: TestGateway,
  revision: string,
): Promise<{ results: Results; output: string }> {
  const folder = mkdtempSync(join(tmpdir(), "switchyard-conformance-"));
  const proxy = withCredential(gateway);
  try {
    const url = `http://127.0.0.1:${proxy.port}/mcp`;
    const { output } = await runProgram(
      "conformance",
      ["server", "--url", url, "--requirements", revision],
      { folder },
    );
    const lines = output.matchAll(/^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed/gm);
    const results = new Map(
      [...lines].map(([, name = "", passed, failed]) => [
        name,
        { passed: Number(passed), failed: Number(failed) },
      ]),
    );
    return { results, output };
  } finally {
    await proxy.stop(true);
    rmSync(folder, { recursive: true, force: true });
  }
}

describe.skipIf(missing !== undefined)(
  `the conformance suite of MCP${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    describe.each(Object.entries(scenarios))("%s", (revision, rows) => {
      const found: Record<string, { results: Results; output: string }> = {};
      beforeAll(async () => {
        for (const [name, tools] of [
          ["server", {}],
          ["fixture", { buildMcpServer: buildFixtureServer }],
        ] as const) {
          const gateway = await startGateway({ sandbox: true }, tools);
          found[name] = await resultsOf(gateway, revision);
          await gateway.stop();
        }
      }, 180_000);

      test("runs exactly the scenarios of the table", () => {
        for (const { results } of Object.values(found))
          expect([...results.keys()].sort()).toEqual(Object.keys(rows).sort());
      });

      const run = Object.entries(rows).flatMap(([scenario, target]) =>
        typeof target === "string" ? [[scenario, target] as const] : [],
      );
      test.each(run)("%s passes against the %s", (scenario, target) => {
        const { results, output } = found[target] ?? { results: new Map(), output: "" };
        const section = output
          .split("=== Running scenario: ")
          .find((each) => each.startsWith(`${scenario} `));
        const outcome = results.get(scenario);
        if (outcome?.failed !== 0) console.error(section);
        expect(outcome).toMatchObject({ failed: 0 });
        expect(outcome?.passed).toBeGreaterThan(0);
      });
    });
  },
);

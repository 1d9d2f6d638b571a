import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testManagementKey, type TestGateway } from "../../../support/gateway.ts";
import { runProgram } from "./protocol-programs.ts";

/** What came of a scenario, by its name. */
type Results = ReadonlyMap<string, { passed: number; failed: number }>;

/** What the suite found, and what it printed. */
export interface SuiteRun {
  results: Results;
  output: string;
}

/** Returns what the suite printed about a scenario. */
export const sectionOf = ({ output }: SuiteRun, scenario: string): string | undefined =>
  output.split("=== Running scenario: ").find((each) => each.startsWith(`${scenario} `));

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

/** Runs every scenario of a revision against a path of a gateway. */
export async function resultsOf(
  gateway: TestGateway,
  { revision, path = "/mcp" }: { revision: string; path?: string },
): Promise<SuiteRun> {
  const folder = mkdtempSync(join(tmpdir(), "switchyard-conformance-"));
  const proxy = withCredential(gateway);
  try {
    const url = `http://127.0.0.1:${proxy.port}${path}`;
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

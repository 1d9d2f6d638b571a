import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { PeopledGateway } from "../../api/people-browser.ts";
import { playScenario, type Scenario, startSuiteClient } from "./gateway-client.ts";
import { missingProgram, runProgram } from "./protocol-programs.ts";

const missing = missingProgram("conformance");

/** The scenarios of OAuth that both revisions require. */
const oauth = [
  "auth/metadata-default",
  "auth/metadata-var1",
  "auth/metadata-var2",
  "auth/metadata-var3",
  "auth/basic-cimd",
  "auth/scope-from-www-authenticate",
  "auth/scope-from-scopes-supported",
  "auth/scope-omitted-when-undefined",
  "auth/scope-step-up",
  "auth/scope-retry-limit",
  "auth/token-endpoint-auth-basic",
  "auth/token-endpoint-auth-post",
  "auth/token-endpoint-auth-none",
  "auth/pre-registration",
];

/** Every scenario that a revision requires of clients. */
const scenarios = {
  "2025-11-25": [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    ...oauth,
  ],
  "2026-07-28": [
    "tools_call",
    "request-metadata",
    ...oauth,
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
  ],
} as const;

describe.skipIf(missing !== undefined)(
  `the gateway as a client of the conformance suite${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), "switchyard-conformance-"));
    let people: PeopledGateway;
    let driver: ReturnType<typeof startDriver>;
    const played = new Map<string, string>();
    const found: Record<string, ReadonlyMap<string, string>> = {};

    /** Plays what the suite's clients tell, one after the other: each has 30 seconds by default. */
    const startDriver = () =>
      Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        idleTimeout: 0,
        async fetch(request) {
          const scenario = (await request.json()) as Scenario;
          const outcome = await playScenario(people, scenario).then(
            (calls) => ({ text: calls.join("\n"), status: 200 }),
            (error: unknown) => ({ text: String(error), status: 500 }),
          );
          played.set(scenario.scenario, outcome.text);
          return new Response(outcome.text, { status: outcome.status });
        },
      });

    beforeAll(async () => {
      people = await startSuiteClient();
      driver = startDriver();
      const program = join(import.meta.dirname, "tell-scenario.ts");
      const command = `${process.execPath} ${program} ${driver.port}`;
      for (const revision of Object.keys(scenarios)) {
        const { output } = await runProgram(
          "conformance",
          ["client", "--command", command, "--requirements", revision, "--timeout", "30000"],
          { folder },
        );
        const lines = output.matchAll(/^([✓✗]) ([\w/-]+): (.*)$/gmu);
        found[revision] = new Map(
          [...lines].map(([, mark = "", name = "", counts = ""]) => [name, `${mark} ${counts}`]),
        );
      }
    }, 600_000);
    afterAll(async () => {
      await driver.stop(true);
      await people.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const rows = Object.entries(scenarios).flatMap(([revision, names]) =>
      names.map((name) => [revision, name] as const),
    );
    test.each(rows)("%s: %s passes", (revision, scenario) => {
      const outcome = found[revision]?.get(scenario);
      if (!outcome?.startsWith("✓")) console.error(played.get(scenario));
      expect(outcome).toMatch(/^✓ [1-9]\d* passed, 0 failed$/);
    });
  },
);

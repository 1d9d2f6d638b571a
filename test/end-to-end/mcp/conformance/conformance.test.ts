import { beforeAll, describe, expect, test } from "bun:test";
import { startGateway } from "../../../support/gateway.ts";
import { buildFixtureServer } from "./fixture-server.ts";
import { missingProgram } from "./protocol-programs.ts";
import { resultsOf, sectionOf, type SuiteRun } from "./run-suite.ts";
import { scenarios } from "./scenarios.ts";

const missing = missingProgram("conformance");

describe.skipIf(missing !== undefined)(
  `the conformance suite of MCP${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    describe.each(Object.entries(scenarios))("%s", (revision, rows) => {
      const found: Record<string, SuiteRun> = {};
      beforeAll(async () => {
        for (const [name, tools] of [
          ["server", {}],
          ["fixture", { buildMcpServer: buildFixtureServer }],
        ] as const) {
          const gateway = await startGateway({ sandbox: true }, tools);
          found[name] = await resultsOf(gateway, { revision });
          await gateway.stop();
        }
      }, 240_000);

      test("runs exactly the scenarios of the table", () => {
        for (const { results } of Object.values(found))
          expect([...results.keys()].sort()).toEqual(Object.keys(rows).sort());
      });

      const run = Object.entries(rows).flatMap(([scenario, target]) =>
        typeof target === "string" ? [[scenario, target] as const] : [],
      );
      test.each(run)("%s passes against the %s", (scenario, target) => {
        const run = found[target] ?? { results: new Map(), output: "" };
        const outcome = run.results.get(scenario);
        if (outcome?.failed !== 0) console.error(sectionOf(run, scenario));
        expect(outcome).toMatchObject({ failed: 0 });
        expect(outcome?.passed).toBeGreaterThan(0);
      });
    });
  },
);

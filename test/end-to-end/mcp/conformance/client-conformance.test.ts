import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "bun:test";
import { missingProgram, runProgram } from "./protocol-programs.ts";

const missing = missingProgram("conformance");

/** Scenarios that the gateway passes as a client; each starts a gateway of its own. */
const scenarios = [
  "initialize",
  "tools_call",
  "request-metadata",
  "http-standard-headers",
  "auth/metadata-default",
  "auth/iss-supported",
  "auth/iss-wrong-issuer",
  "auth/pre-registration",
];

describe.skipIf(missing !== undefined)(
  `the gateway as a client of the conformance suite${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), "switchyard-conformance-"));
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    test.each(scenarios)(
      "%s",
      async (scenario) => {
        const program = join(import.meta.dirname, "gateway-client.ts");
        const command = `${process.execPath} ${program}`;
        const ran = await runProgram(
          "conformance",
          ["client", "--command", command, "--scenario", scenario, "--timeout", "100000"],
          { folder },
        );
        expect(ran.output + ran.errorOutput).toContain("OVERALL: PASSED");
      },
      120_000,
    );
  },
);

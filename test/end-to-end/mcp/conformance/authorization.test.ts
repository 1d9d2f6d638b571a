import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { PeopledGateway } from "../../api/people-browser.ts";
import { AppSide } from "../../consent/flows.ts";
import { freePort } from "../../process/support/ports.ts";
import { approveAt, firstMatch, startPeopledMcp } from "./peopled-mcp.ts";
import { missingProgram, startProgram } from "./protocol-programs.ts";

const missing = missingProgram("conformance");

describe.skipIf(missing !== undefined)(
  `the conformance suite's authorization scenarios${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    let people: PeopledGateway;
    const folder = mkdtempSync(join(tmpdir(), "switchyard-conformance-"));
    beforeAll(async () => {
      people = await startPeopledMcp();
    }, 240_000);
    afterAll(async () => {
      await people.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    test.each(["2025-11-25", "2026-07-28"])(
      "metadata and the authorization code grant pass, revision %s",
      async (revision) => {
        const { origin, baseUrl } = people.gateway();
        const port = freePort();
        const redirect = `http://127.0.0.1:${port}/callback`;
        const clientId = await new AppSide(baseUrl).clientId({
          redirect_uris: [redirect],
          client_name: "The suite",
        });
        const child = startProgram(
          "conformance",
          [
            "authorization",
            "--url",
            origin,
            "--client-id",
            clientId,
            "--resource",
            `${origin}/mcp`,
            "--port",
            String(port),
            "--spec-version",
            revision,
          ],
          { folder },
        );
        const { match, rest } = await firstMatch(
          child.stdout,
          /^http\S+\/authorize\?\S+$[^]*^Callback server started/m,
        );
        expect((await approveAt(people.owner, match.split("\n")[0] ?? "")).status).toBe(200);
        const output = await rest;
        expect(await child.exited).toBe(0);
        const results = [...output.matchAll(/^[✓✗] ([\w-]+): [1-9]\d* passed, 0 failed/gm)].map(
          ([, name]) => name,
        );
        expect(results).toEqual([
          "authorization-server-metadata-endpoint",
          "authorization-code-grant",
        ]);
      },
    );
  },
);

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { missingForPython } from "../clients/python/python-client.ts";
import { testClientsFolder } from "../clients/support/test-clients-folder.ts";

const missing = missingForPython();

describe.skipIf(missing !== undefined)(
  `Python's clients${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    let gateway: TestGateway;
    beforeAll(async () => {
      let origin = "";
      gateway = await startGateway({ sandbox: true, publicUrl: () => origin });
      origin = gateway.origin;
    });
    afterAll(() => gateway.stop());

    test("upload in parts, run batches in both forms and read their results", async () => {
      const child = Bun.spawn(
        ["python3", join(import.meta.dir, "batches.py"), gateway.origin, testLlmKey],
        {
          env: { PATH: process.env["PATH"] ?? "", PYTHONPATH: join(testClientsFolder, "python") },
          stdout: "pipe",
          stderr: "pipe",
        },
      );
      const [stdout, stderr] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      expect(stderr).toBe("");
      expect(JSON.parse(stdout)).toEqual({
        ids: ["a", "b"],
        counts: 2,
        results: [["m", "succeeded"]],
        deleted: "message_batch_deleted",
      });
    }, 240_000);
  },
);

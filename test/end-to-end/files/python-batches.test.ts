import { expect, test } from "bun:test";
import { join } from "node:path";
import { startGateway, testLlmKey } from "../../support/gateway.ts";
import { missingPackage, runScript } from "../clients/python/run-script.ts";

const missing = missingPackage("python", "anthropic");

test.skipIf(missing !== undefined)(
  `OpenAI's and Anthropic's clients of Python upload, run batches and read their results${missing ? ` (missing: ${missing})` : ""}`,
  async () => {
    let origin = "";
    const gateway = await startGateway({ sandbox: true, publicUrl: () => origin });
    origin = gateway.origin;
    try {
      const parameters = [origin, testLlmKey];
      const script = join(import.meta.dir, "batches.py");
      expect(await runScript(script, { group: "python", parameters })).toEqual({
        ids: ["a", "b"],
        counts: 2,
        results: [["m", "succeeded"]],
        deleted: "message_batch_deleted",
      });
    } finally {
      await gateway.stop();
    }
  },
  600_000,
);

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { missingPackage, runScript } from "./python/run-script.ts";

const group = "python-litellm";
const missing = missingPackage(group, "litellm");

describe.skipIf(missing !== undefined)(
  `LiteLLM's client of Python${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    let gateway: TestGateway;
    let told: unknown;
    beforeAll(async () => {
      let origin = "";
      gateway = await startGateway({ sandbox: true, publicUrl: () => origin });
      origin = gateway.origin;
      const script = join(import.meta.dir, "python", "litellm_driver.py");
      told = await runScript(script, { group, parameters: [origin, testLlmKey] });
    }, 600_000);
    afterAll(() => gateway.stop());

    test("uploads, runs batches and reads their results", () => {
      expect(told).toHaveProperty("batches", {
        status: "completed",
        ids: ["a", "b"],
        listed: true,
        cancelled: true,
        deleted: true,
      });
    });

    test("makes and changes a picture, speaks and transcribes", () => {
      expect(told).toHaveProperty("media", {
        made: "PNG",
        edited: "PNG",
        spoken: "RIFF",
        transcribed: true,
        timed: true,
      });
    });
  },
);

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { missingPackage, runScript } from "../clients/python/run-script.ts";

let gateway: TestGateway;
beforeAll(async () => {
  let origin = "";
  gateway = await startGateway({ sandbox: true, publicUrl: () => origin });
  origin = gateway.origin;
});
afterAll(() => gateway.stop());

describe.each([
  {
    clients: "OpenAI's and Anthropic's clients",
    script: "batches.py",
    group: "python",
    name: "anthropic",
    told: {
      ids: ["a", "b"],
      counts: 2,
      results: [["m", "succeeded"]],
      deleted: "message_batch_deleted",
    },
  },
  {
    clients: "LiteLLM's client",
    script: "litellm-batches.py",
    group: "python-litellm",
    name: "litellm",
    told: {
      status: "completed",
      ids: ["a", "b"],
      listed: true,
      cancelled: true,
      deleted: true,
    },
  },
])("$clients of Python", ({ script, group, name, told }) => {
  const missing = missingPackage(group, name);

  test.skipIf(missing !== undefined)(
    `upload, run batches and read their results${missing ? ` (missing: ${missing})` : ""}`,
    async () => {
      const parameters = [gateway.origin, testLlmKey];
      expect(await runScript(join(import.meta.dir, script), { group, parameters })).toEqual(told);
    },
    600_000,
  );
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { startGateway, testLlmKey, testManagementKey } from "../test/support/gateway.ts";
import opencode from "./opencode.json";

const gateway = await startGateway({ sandbox: true });
afterAll(() => gateway.stop());

// Documents are parsed on the workspace's own key at a provider; any key does for the sandbox.
beforeAll(async () => {
  const saved = await fetch(`${gateway.baseUrl}/auth/byok`, {
    method: "POST",
    headers: { authorization: `Bearer ${testManagementKey}` },
    body: JSON.stringify({ provider_id: "sandbox", api_key: "any-key-at-all" }),
  });
  expect(saved.ok).toBe(true);
});

/** What an example prints; its exit code has to be 0. */
async function outputOf(command: string[]): Promise<string> {
  const child = Bun.spawn(command, {
    cwd: import.meta.dir,
    env: {
      ...process.env,
      SWITCHYARD_URL: gateway.origin,
      SWITCHYARD_KEY: testLlmKey,
      MODEL: undefined,
    },
    stderr: "inherit",
  });
  const output = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  return output;
}

test.each([
  ["chat.ts", ['You wrote: "Hello"', "cost: 0"]],
  ["chat-stream.ts", ['You wrote: "Hello"', "cost: 0"]],
  ["messages.ts", ['You wrote: "Hello"', "cost: 0"]],
  ["responses.ts", ['You wrote: "Hello"', 'You wrote: "And again"', "cost: 0"]],
  [
    "embeddings.ts",
    ["first: 3 vectors of 64 dimensions, MISS", "second: 3 vectors of 64 dimensions, HIT"],
  ],
  ["rerank.ts", ["Cats eat cat food"]],
  ["moderations.ts", ["What do cats eat?: harmless", "I will kill you: violence"]],
  ["ocr.ts", ["# Invoice 1042", "| Wagons | 12 | 340.00 |", "read by switchyard/ocr-eng-1"]],
  ["documents.ts", ["# report.pdf", "pages: 2"]],
  ["chat-tools.ts", ['name: "weather"', 'The tool returned: "4 degrees, rain"']],
])("%s runs unchanged", async (file, expected) => {
  const output = await outputOf([process.execPath, join(import.meta.dir, file)]);
  for (const text of expected) expect(output).toContain(text);
});

const curlMissing = Bun.which("curl") === null ? " (missing: curl)" : "";

test.skipIf(Bun.which("curl") === null)(`chat.sh runs unchanged${curlMissing}`, async () => {
  expect(JSON.parse(await outputOf(["bash", "chat.sh"]))).toMatchObject({
    object: "chat.completion",
    usage: { cost: 0 },
  });
});

test.skipIf(Bun.which("curl") === null)(`decisions.sh runs unchanged${curlMissing}`, async () => {
  expect(JSON.parse(await outputOf(["sh", "decisions.sh"]))).toMatchObject({
    answers: {
      refund: { type: "noul" },
      team: { choice: "billing" },
      anger: { legend: { 0: "calm" } },
    },
    usage: { cost: 0 },
  });
});

test("opencode.json names a served model with its actual limits", async () => {
  const [id = "", settings] = Object.entries(opencode.provider.switchyard.models)[0] ?? [];
  expect(opencode.model).toBe(`switchyard/${id}`);
  const model = (await (await gateway.get(`/models/${encodeURIComponent(id)}`)).json()) as {
    context_length: number;
    top_provider: { max_completion_tokens: number };
  };
  expect(settings?.limit).toEqual({
    context: model.context_length,
    output: model.top_provider.max_completion_tokens,
  });
});

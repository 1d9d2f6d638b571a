import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { endProcesses, temporaryDirectory } from "../../support/process.ts";
import { runCommand } from "./run-command.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
});
afterAll(async () => {
  await gateway.stop();
  await endProcesses();
});

const run = (parameters: readonly string[]) =>
  runCommand(["--url", gateway.origin, ...parameters], {
    environment: { SWITCHYARD_KEY: testLlmKey },
  });

const lineOf = (id: string, model: string): string =>
  JSON.stringify({
    custom_id: id,
    method: "POST",
    url: "/v1/chat/completions",
    body: { model, messages: [{ role: "user", content: "hello\u2028you" }] },
  });

test("runs the requests of a file, and writes the results beside it", async () => {
  const path = join(temporaryDirectory(), "in.jsonl");
  const lines = `${lineOf("a", "sandbox/chat:free")}\n${lineOf("b", "nobody/nothing")}\n`;
  writeFileSync(path, `\ufeff${lines}`);
  const ended = await run(["batches", "run", path]);
  expect(ended.exitCode).toBe(0);
  expect(ended.stdout).toContain("is completed");
  expect(ended.stderr).toContain("2/2 completed, 1 failed");
  expect(readFileSync(path.replace(".jsonl", ".output.jsonl"), "utf8")).toContain(
    '"custom_id":"a"',
  );
  expect(readFileSync(path.replace(".jsonl", ".errors.jsonl"), "utf8")).toContain(
    '"custom_id":"b"',
  );
  const [id = ""] = /batch_[0-9a-f]{32}/.exec(ended.stdout) ?? [];
  const watched = await run(["--json", "batches", "watch", id]);
  expect(JSON.parse(watched.stdout)).toMatchObject({ id, status: "completed" });
}, 240_000);

test("reports why an input was refused", async () => {
  const path = join(temporaryDirectory(), "in.jsonl");
  writeFileSync(path, `${lineOf("a", "sandbox/chat:free")}\n${lineOf("a", "sandbox/chat:free")}\n`);
  expect(await run(["batches", "run", path])).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("line 2: The custom_id 'a' for this request"),
  });
}, 240_000);

import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pollUntil } from "../../../test/support/poll-until.ts";
import { createLogger } from "../../platform/telemetry/logger.ts";
import { Supervisor } from "./supervisor.ts";

const directory = mkdtempSync(join(tmpdir(), "switchyard-supervisor-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const logger = createLogger({ level: "info", write: () => undefined });

const supervisorOf = (command: readonly string[]): Supervisor =>
  new Supervisor({ count: 2, command, environment: {}, port: 0, endMs: 60_000, logger });

test("processes that the signal ends before they listen to it have ended cleanly", async () => {
  const supervisor = supervisorOf(["/bin/sleep", "600"]);
  const started = supervisor.start();
  supervisor.end();
  expect(await Promise.all([started, supervisor.exitCode])).toEqual([undefined, 0]);
});

test("so have those that a terminal's own signal ends", async () => {
  const runs = join(directory, "runs");
  const script = `trap 'kill -INT $$; exit 0' TERM; : > '${runs}'; while :; do sleep 0.02; done`;
  const supervisor = supervisorOf(["/bin/sh", "-c", script]);
  const started = supervisor.start();
  await pollUntil(() => existsSync(runs));
  supervisor.end();
  expect(await Promise.all([started, supervisor.exitCode])).toEqual([undefined, 0]);
});

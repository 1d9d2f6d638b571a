import { expect, test } from "bun:test";
import { createLogger } from "../../platform/telemetry/logger.ts";
import { Supervisor } from "./supervisor.ts";

const logger = createLogger({ level: "info", write: () => undefined });

const supervisorOf = (command: readonly string[]): Supervisor =>
  new Supervisor({ count: 2, command, environment: {}, port: 0, endMs: 60_000, logger });

test("processes that the signal ends before they listen to it have ended cleanly", async () => {
  const supervisor = supervisorOf(["/bin/sleep", "600"]);
  const started = supervisor.start();
  supervisor.end();
  expect(await Promise.all([started, supervisor.exitCode])).toEqual([undefined, 0]);
});

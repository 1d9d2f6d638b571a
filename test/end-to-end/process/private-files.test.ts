import { afterAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { endProcesses, startProcess, temporaryDirectory } from "../../support/process.ts";
import { programPath } from "../../support/program.ts";

afterAll(endProcesses);

const openIn = (directory: string): string[] =>
  readdirSync(directory).filter((name) => (statSync(join(directory, name)).mode & 0o077) !== 0);

test("in an existing directory with open permissions, new files are private to the gateway's user", async () => {
  const dataDirectory = join(temporaryDirectory(), "data");
  mkdirSync(dataDirectory);
  chmodSync(dataDirectory, 0o755);
  const gateway = await startProcess({
    dataDirectory,
    command: ["sh", "-c", 'umask 022; exec "$0" "$@"', process.execPath, programPath("main")],
  });
  const made = ["encryption.key", "switchyard.db", "switchyard.db-shm", "switchyard.db-wal"];
  expect(readdirSync(dataDirectory)).toEqual(expect.arrayContaining(made));
  expect(openIn(dataDirectory)).toEqual([]);
  await gateway.terminate();
});

test("files with open permissions from an earlier release are made private, and the log names them", async () => {
  const dataDirectory = temporaryDirectory();
  const first = await startProcess({ dataDirectory });
  await first.terminate();
  writeFileSync(join(dataDirectory, "backup.db"), "");
  for (const name of readdirSync(dataDirectory)) chmodSync(join(dataDirectory, name), 0o644);
  const second = await startProcess({ dataDirectory });
  expect(openIn(dataDirectory)).toEqual([]);
  await second.stderrHas("backup.db");
  await second.terminate();
});

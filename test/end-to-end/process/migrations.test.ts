import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  endProcesses,
  runProcess,
  startProcess,
  temporaryDirectory,
} from "../../support/process.ts";
import { programPath } from "../../support/program.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { stores } from "./support/stores.ts";

const migrateCommand = [process.execPath, programPath("migrate")];
const withoutMigrating = [process.execPath, programPath("main"), "--no-migrate"];

afterAll(endProcesses);

test.each(stores.map(({ name, openEmpty }) => [name, openEmpty] as const))(
  "on %s a gateway with --no-migrate refuses an empty database and serves one that a job migrated",
  async (_, open) => {
    const { options } = await open();
    const refused = await runProcess({ ...options, command: withoutMigrating });
    expect([refused.exitCode, refused.stderr]).toEqual([
      1,
      expect.stringMatching(
        /^switchyard cannot start: the database lacks \d+ migrations? of this release, and this process may not run them/,
      ),
    ]);
    const job = await runProcess({ ...options, command: migrateCommand });
    expect([job.exitCode, job.stdout]).toEqual([
      0,
      expect.stringMatching(/^the database has the \d+ migrations? of this release\n$/),
    ]);
    const gateway = await startProcess({ ...options, command: withoutMigrating });
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
    expect(await gateway.terminate()).toBe(0);
  },
  240_000,
);

test("a job can create the embedded database of a gateway that has never run", async () => {
  const dataDirectory = join(temporaryDirectory(), "data");
  const job = await runProcess({ dataDirectory, command: migrateCommand });
  expect([job.exitCode, job.stderr]).toEqual([0, ""]);
  const gateway = await startProcess({ dataDirectory, command: withoutMigrating });
  expect(await gateway.terminate()).toBe(0);
});

test("secrets can be read from files, and an unknown option is refused by name", async () => {
  const directory = temporaryDirectory();
  const path = join(directory, "management-key");
  const { SWITCHYARD_BOOTSTRAP_MANAGEMENT_KEY: managementKey, ...others } = bootstrapVariables;
  writeFileSync(path, `${managementKey}\n`);
  const gateway = await startProcess({
    environment: { ...others, SWITCHYARD_BOOTSTRAP_MANAGEMENT_KEY_FILE: path },
  });
  const answer = await fetch(`${gateway.url}/api/v1/keys`, {
    headers: { authorization: `Bearer ${managementKey}` },
  });
  expect(answer.status).toBe(200);
  await gateway.terminate();
  const missing = await runProcess({
    environment: { OPENAI_API_KEY_FILE: join(directory, "absent") },
  });
  expect([missing.exitCode, missing.stderr]).toEqual([
    1,
    expect.stringContaining("OPENAI_API_KEY_FILE: cannot be read: ENOENT"),
  ]);
  const unknown = await runProcess({
    command: [process.execPath, programPath("main"), "--fast"],
  });
  expect([unknown.exitCode, unknown.stderr]).toEqual([
    1,
    expect.stringContaining("--fast: there is no such option"),
  ]);
}, 240_000);

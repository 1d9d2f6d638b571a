import { afterAll, beforeAll, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createAuthority } from "../../support/certificates.ts";
import { endProcesses, startProcess, temporaryDirectory } from "../../support/process.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import { jsonOf, runCommand } from "./run-command.ts";

const dataDirectory = temporaryDirectory();
beforeAll(async () => {
  await (await startProcess({ dataDirectory })).terminate();
});
afterAll(endProcesses);

const yamlFor = (port: number | undefined): string =>
  `providers:\n  - id: acme\n    base_url: http://127.0.0.1:${port}/v1\n    dialect: openai-chat\n    api_key: k\n    models: []\n`;

test("the doctor lists its checks and contacts the providers that have a key", async () => {
  const provider = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response(null, { status: 404 }),
  });
  const reached = await runCommand(["--json", "doctor"], {
    dataDirectory,
    yaml: yamlFor(provider.port),
  });
  expect(jsonOf(reached)).toMatchObject({ healthy: true });
  const { findings } = jsonOf(reached) as {
    findings: { check: string; state: string; text: string }[];
  };
  expect(findings.map(({ check }) => check)).toEqual([
    "versions",
    "configuration",
    "disk",
    "database",
    "keys",
    "sums",
    "providers",
  ]);
  await provider.stop(true);
  const unreachable = await runCommand(["doctor"], { dataDirectory, yaml: yamlFor(provider.port) });
  expect(unreachable).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^problem +providers +acme cannot be reached at /),
  });
  expect(await runCommand(["doctor", "--offline"], { dataDirectory })).toMatchObject({
    exitCode: 0,
    stderr: "",
  });
});

test("the doctor says why an archive cannot be used, without its password", async () => {
  const archive = "clickhouse+http://me:hunter2@127.0.0.1:1/records";
  const { exitCode, stderr } = await runCommand(["doctor"], {
    dataDirectory,
    environment: { CLICKHOUSE_URL: archive },
  });
  expect(exitCode).toBe(1);
  expect(stderr).toContain("ClickHouse cannot be used at http://127.0.0.1:1/records: ");
  expect(stderr).not.toContain("hunter2");
});

test("the doctor trusts tls.ca_files as requests do, and shows no password of an address", async () => {
  const authority = createAuthority();
  const provider = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: authority.issue("127.0.0.1"),
    fetch: () => new Response(null, { status: 404 }),
  });
  const certificates = join(temporaryDirectory(), "company.pem");
  writeFileSync(certificates, authority.cert);
  const yaml = yamlFor(provider.port).replace("http://", "https://me:hunter2@");
  const unknown = await runCommand(["doctor"], { dataDirectory, yaml });
  expect(unknown).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("acme cannot be reached at https://me:"),
  });
  const trusted = await runCommand(["doctor"], {
    dataDirectory,
    yaml: `tls: { ca_files: [${JSON.stringify(certificates)}] }\n${yaml}`,
  });
  await provider.stop(true);
  expect(trusted).toMatchObject({ exitCode: 0, stderr: "" });
  expect(unknown.stderr + trusted.stdout).not.toContain("hunter2");
});

test("the doctor reports a provider clock that differs widely", async () => {
  const date = new Date(Date.now() - 3_600_000).toUTCString();
  const provider = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response(null, { headers: { date } }),
  });
  const { exitCode, stderr } = await runCommand(["doctor"], {
    dataDirectory,
    yaml: yamlFor(provider.port),
  });
  await provider.stop(true);
  expect([exitCode, stderr]).toEqual([
    1,
    expect.stringMatching(/clock +this machine's clock is 36\d\d s off/),
  ]);
});

test("the doctor reports an invalid configuration, a missing database and a missing key", async () => {
  expect(
    await runCommand(["doctor"], { dataDirectory, yaml: "server:\n  prot: 1\n" }),
  ).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^problem +configuration +switchyard\.yaml:2 server\.prot/),
  });
  expect(await runCommand(["doctor", "--offline"])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("there is no database at"),
  });
  rmSync(join(dataDirectory, "encryption.key"));
  expect(await runCommand(["doctor", "--offline"], { dataDirectory })).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/^problem +keys .*is missing, but the database exists/),
  });
});

test("the doctor names a damaged schema and the encryption key of another database", async () => {
  const own = temporaryDirectory();
  await (await startProcess({ dataDirectory: own, environment: bootstrapVariables })).terminate();
  await runCommand(["keys", "create", "audited"], { dataDirectory: own });
  expect(await runCommand(["doctor", "--offline"], { dataDirectory: own })).toMatchObject({
    exitCode: 0,
  });
  const keyPath = join(own, "encryption.key");
  const key = readFileSync(keyPath);
  writeFileSync(keyPath, Buffer.alloc(32, 9).toString("base64"));
  const otherKey = await runCommand(["doctor", "--offline"], { dataDirectory: own });
  expect(otherKey.stderr).toMatch(/^problem +keys +the encryption key is not the one/);
  expect(otherKey.stderr).not.toContain("was changed");
  writeFileSync(keyPath, key);
  const database = new Database(join(own, "switchyard.db"));
  const [index] = database
    .query<{ name: string }, []>(
      "select name from sqlite_master where type = 'index' and sql is not null",
    )
    .all();
  database.run(`drop index "${index?.name}"`);
  database.run("alter table presets drop column description");
  database.close();
  const { exitCode, stderr } = await runCommand(["doctor", "--offline"], { dataDirectory: own });
  expect(exitCode).toBe(1);
  expect(stderr).toContain(`the index ${index?.name} is missing`);
  expect(stderr).toContain("the column presets.description is missing");
});

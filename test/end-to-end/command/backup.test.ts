import { afterAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { copyUnlessGone } from "../../../src/cli/backup.ts";
import { endProcesses, startProcess, temporaryDirectory } from "../../support/process.ts";
import { startPostgres } from "../../support/postgres.ts";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import { queryDatabase } from "../process/support/query-database.ts";
import { jsonOf, runCommand } from "./run-command.ts";

afterAll(endProcesses);

const ofLaterRelease =
  "insert into kysely_migration (name, timestamp) values ('2999-01-01-later', '2999')";
const authorization = { authorization: `Bearer ${testManagementKey}` };
const namesAt = async (url: string): Promise<string[]> => {
  const { data } = (await (await fetch(`${url}/v1/keys`, { headers: authorization })).json()) as {
    data: { name: string }[];
  };
  return data.map(({ name }) => name);
};

test("a backup of a running gateway is verified and can be restored", async () => {
  const dataDirectory = temporaryDirectory();
  const folder = join(temporaryDirectory(), "backup");
  const gateway = await startProcess({ dataDirectory, environment: bootstrapVariables });
  const make = (name: string) =>
    fetch(`${gateway.url}/v1/keys`, {
      method: "POST",
      headers: authorization,
      body: JSON.stringify({ name }),
    });
  await make("before");
  const body = new FormData();
  body.append("file", new Blob(["kept"]), "kept.txt");
  body.append("purpose", "user_data");
  const llmKey = { authorization: `Bearer ${testLlmKey}` };
  const sent = await fetch(`${gateway.url}/v1/files`, { method: "POST", headers: llmKey, body });
  const { id: fileId } = (await sent.json()) as { id: string };
  expect(await runCommand(["backup", folder], { dataDirectory })).toMatchObject({
    exitCode: 0,
    stderr: "",
  });
  expect(readdirSync(folder).toSorted()).toEqual([
    "encryption.key",
    "files",
    "manifest.json",
    "switchyard.db",
  ]);
  for (const name of ["encryption.key", "manifest.json", "switchyard.db"])
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  for (const option of ["--without-key", "--no-encryption-key"]) {
    const keyless = join(temporaryDirectory(), "backup");
    expect(await runCommand(["backup", keyless, option], { dataDirectory })).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining("The encryption key is not in it"),
    });
    expect(readdirSync(keyless).toSorted()).toEqual(["files", "manifest.json", "switchyard.db"]);
    const elsewhere = join(temporaryDirectory(), "new");
    expect(await runCommand(["restore", keyless], { dataDirectory: elsewhere })).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("encryption.key is missing"),
    });
    expect(existsSync(elsewhere)).toBe(false);
  }
  await make("after");
  expect(await runCommand(["backup", folder], { dataDirectory })).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("is not empty"),
  });
  expect(await runCommand(["restore", folder], { dataDirectory })).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("--force"),
  });
  expect(await runCommand(["restore", folder, "--force"], { dataDirectory })).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("stop it first"),
  });
  rmSync(join(dataDirectory, "files"), { recursive: true });
  await gateway.terminate();
  const restored = await runCommand(["--json", "restore", folder, "--force"], { dataDirectory });
  expect(restored).toMatchObject({ exitCode: 0, stderr: "" });
  expect(readdirSync((jsonOf(restored) as { kept: string }).kept)).toContain("switchyard.db");
  const again = await startProcess({ dataDirectory });
  expect(await namesAt(again.url)).toContain("before");
  expect(await namesAt(again.url)).not.toContain("after");
  expect(
    (await fetch(`${again.url}/v1/credits`, { headers: { authorization: `Bearer ${testLlmKey}` } }))
      .status,
  ).toBe(200);
  const content = await fetch(`${again.url}/v1/files/${fileId}/content`, { headers: llmKey });
  expect(await content.text()).toBe("kept");
  await again.terminate();
});

test("a file that was deleted while the others were copied is left out", () => {
  const folder = temporaryDirectory();
  const [gone, to] = [join(folder, "gone"), join(folder, "copies", "gone")];
  copyUnlessGone(gone, to);
  expect(existsSync(to)).toBe(false);
  writeFileSync(gone, "here");
  copyUnlessGone(gone, to);
  expect(readFileSync(to, "utf8")).toBe("here");
});

test("a changed backup is refused, and restoring on a new machine needs only the backup", async () => {
  const dataDirectory = temporaryDirectory();
  const folder = join(temporaryDirectory(), "backup");
  await (await startProcess({ dataDirectory, environment: bootstrapVariables })).terminate();
  await runCommand(["backup", folder], { dataDirectory });
  const elsewhere = join(temporaryDirectory(), "new");
  expect(await runCommand(["restore", folder], { dataDirectory: elsewhere })).toMatchObject({
    exitCode: 0,
  });
  const gateway = await startProcess({ dataDirectory: elsewhere });
  expect(await namesAt(gateway.url)).toEqual(["bootstrap"]);
  await gateway.terminate();
  // A database beside the data directory: the key that is replaced is kept with the database.
  const apart = temporaryDirectory();
  const place = {
    dataDirectory: join(apart, "data"),
    yaml: `storage: { url: ${JSON.stringify(`sqlite:${join(apart, "database", "one.db")}`)} }\n`,
  };
  expect(await runCommand(["restore", folder], place)).toMatchObject({ exitCode: 0, stderr: "" });
  const ownKey = join(apart, "data", "encryption.key");
  const otherKey = Buffer.alloc(32, 7).toString("base64");
  writeFileSync(ownKey, otherKey);
  const over = await runCommand(["--json", "restore", folder, "--force"], place);
  const { kept } = jsonOf(over) as { kept: string };
  expect(readFileSync(join(kept, "encryption.key"), "utf8")).toBe(otherKey);
  expect(readdirSync(kept)).toContain("one.db");
  expect(readFileSync(ownKey, "utf8")).toBe(readFileSync(join(folder, "encryption.key"), "utf8"));
  // What is replaced may be of a later release, or damaged: it is set aside unopened.
  await queryDatabase(join(apart, "database", "one.db"), ofLaterRelease);
  expect(await runCommand(["restore", folder, "--force"], place)).toMatchObject({ exitCode: 0 });
  await Bun.write(join(apart, "database", "one.db"), "no database".repeat(1_000));
  expect(await runCommand(["restore", folder, "--force"], place)).toMatchObject({ exitCode: 0 });
  const bytes = await Bun.file(join(folder, "switchyard.db")).bytes();
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
  await Bun.write(join(folder, "switchyard.db"), bytes);
  const refused = await runCommand(["restore", folder, "--force"], { dataDirectory: elsewhere });
  expect(refused).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("was changed; nothing was restored"),
  });
});

/** Copies a backup of Postgres as a release wrote it that has not added a column to the keys yet. */
async function olderThan(folder: string): Promise<string> {
  const older = temporaryDirectory();
  const lines = Bun.gunzipSync(await Bun.file(join(folder, "postgres.jsonl.gz")).bytes());
  const text = Buffer.from(lines)
    .toString()
    .split("\n")
    .filter((line) => !/^row\tkysely_migration\t.*passthrough-keys/.test(line))
    .map((line) => line.replace(/^(row\tllm_keys\t.*),"passthrough":[^,}]+/, "$1"))
    .join("\n");
  const bytes = Bun.gzipSync(Buffer.from(text));
  await Bun.write(join(older, "postgres.jsonl.gz"), bytes);
  const manifest = (await Bun.file(join(folder, "manifest.json")).json()) as object;
  const files = { "postgres.jsonl.gz": new Bun.CryptoHasher("sha256").update(bytes).digest("hex") };
  await Bun.write(join(older, "manifest.json"), JSON.stringify({ ...manifest, files }));
  return older;
}

test("a backup of Postgres is made beside a running gateway and can be restored", async () => {
  const server = await startPostgres();
  try {
    const environment = {
      ...bootstrapVariables,
      DATABASE_URL: await server.freshDatabase(),
      SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
    };
    const folder = join(temporaryDirectory(), "backup");
    const gateway = await startProcess({ environment });
    const make = (name: string) =>
      fetch(`${gateway.url}/v1/keys`, {
        method: "POST",
        headers: authorization,
        body: JSON.stringify({ name }),
      });
    // A name may have separators that end lines elsewhere.
    const before = "before\u2028and\u2029after";
    await make(before);
    const asked = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${testLlmKey}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "sandbox/chat:free",
        messages: [{ role: "user", content: "Hi" }],
      }),
    });
    expect(asked.status).toBe(200);
    expect(await runCommand(["backup", folder], { environment })).toMatchObject({
      exitCode: 0,
      stderr: "",
    });
    expect(readdirSync(folder).toSorted()).toEqual(["manifest.json", "postgres.jsonl.gz"]);
    await make("after");
    expect(await runCommand(["restore", folder], { environment })).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("--force"),
    });
    expect(await runCommand(["restore", folder, "--force"], { environment })).toMatchObject({
      exitCode: 1,
    });
    expect(await namesAt(gateway.url)).toContain("after");
    await gateway.terminate();
    await queryDatabase(environment.DATABASE_URL, ofLaterRelease);
    const restored = await runCommand(["--json", "restore", folder, "--force"], { environment });
    expect([restored.stderr, restored.exitCode]).toEqual(["", 0]);
    expect((jsonOf(restored) as { kept: string }).kept).toMatch(
      /^the schema before_restore_\d{14}$/,
    );
    const again = await startProcess({ environment });
    const names = await namesAt(again.url);
    expect([names.includes(before), names.includes("after")]).toEqual([true, false]);
    await again.terminate();
    const elsewhere = { ...environment, DATABASE_URL: await server.freshDatabase() };
    expect(
      await runCommand(["restore", await olderThan(folder)], { environment: elsewhere }),
    ).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(
        /an older release wrote the backup, before \S*passthrough-keys/,
      ),
    });
    // An empty database needs nothing but the backup and the encryption key.
    expect(await runCommand(["restore", folder], { environment: elsewhere })).toMatchObject({
      exitCode: 0,
      stderr: "",
    });
    const other = await startProcess({ environment: elsewhere });
    expect(await namesAt(other.url)).toContain(before);
    expect((await runCommand(["doctor", "--offline"], { environment: elsewhere })).exitCode).toBe(
      0,
    );
    await other.terminate();
  } finally {
    await server.stop();
  }
}, 600_000);

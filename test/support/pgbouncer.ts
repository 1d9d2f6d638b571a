import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../end-to-end/process/support/ports.ts";
import { TextLog } from "./text-log.ts";

const program = Bun.which("pgbouncer", {
  PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/local/sbin`,
});

export const hasPgBouncer = program !== null;

/** The suffix for titles of tests that are skipped without PgBouncer. */
export const pgBouncerMissing = hasPgBouncer ? "" : " (missing: pgbouncer)";

/** A PgBouncer on loopback in front of a database. */
export interface PgBouncer {
  /** URL of the database through the pooler. */
  url: string;
  stop(): Promise<void>;
}

/** Starts a PgBouncer in a pool mode. */
export async function startPgBouncer(
  databaseUrl: string,
  poolMode: "session" | "transaction",
): Promise<PgBouncer> {
  if (program === null) throw new Error("pgbouncer is not installed");
  const { hostname, port: serverPort, username, password, pathname } = new URL(databaseUrl);
  const port = freePort();
  const directory = mkdtempSync(join(tmpdir(), "switchyard-pgbouncer-"));
  const path = join(directory, "pgbouncer.ini");
  const login = `user=${username}${password === "" ? "" : ` password=${decodeURIComponent(password)}`}`;
  writeFileSync(
    path,
    `[databases]
* = host=${hostname} port=${serverPort} ${login}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${poolMode}
default_pool_size = 40
`,
  );
  // PgBouncer refuses to run as root.
  chmodSync(directory, 0o755);
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const child = Bun.spawn([program, ...user, path], { stdout: "ignore", stderr: "pipe" });
  process.on("exit", () => child.kill("SIGKILL"));
  await new TextLog(child.stderr).has("process up");
  return {
    url: `postgres://${username}@127.0.0.1:${port}${pathname}`,
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

#!/usr/bin/env node
// Starts the command with the Bun that was installed beside it, so that Node alone is enough to
// type `switchyard`. Module names have no `node:` prefix, and nothing here is newer than Node 12,
// so that an old Node can say that it is too old.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

function fail(message) {
  console.error(`switchyard: ${message}`);
  process.exit(2);
}

if (Number(process.versions.node.split(".")[0]) < 20) {
  fail(
    `Node ${process.versions.node} is too old: install Node 20 or newer, then run this command again`,
  );
}

/** The installed Bun; undefined where nothing is installed yet. */
function installedBun() {
  try {
    const folder = dirname(createRequire(import.meta.url).resolve("bun/package.json"));
    return [join(folder, "bin", "bun.exe"), join(folder, "bin", "bun")].find((path) =>
      existsSync(path),
    );
  } catch {
    return undefined;
  }
}

const root = fileURLToPath(new URL("..", import.meta.url));
const bun = installedBun();
if (bun === undefined) fail(`Bun is not installed yet: run \`npm start\` once in ${root}`);

const child = spawn(bun, [join(root, "src", "switchyard.ts"), ...process.argv.slice(2)], {
  stdio: "inherit",
  // The number of requests to providers at once, which Bun otherwise bounds at 256, and how many
  // milliseconds freed memory is kept for the next request.
  env: { BUN_CONFIG_MAX_HTTP_REQUESTS: "16384", MIMALLOC_PURGE_DELAY: "1000", ...process.env },
});
// A terminal sends its signals to both; others reach this process alone.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => signal !== "SIGINT" && child.kill(signal));
child.once("error", (error) => fail(`Bun could not be run: ${error.message}`));
child.once("close", (code, signal) =>
  process.exit(code === null ? 128 + (signal === "SIGKILL" ? 9 : 15) : code),
);

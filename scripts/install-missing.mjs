// Installs the locked dependencies when they are absent or older than the lock file, so that
// `npm start` and `npm test` work on a fresh clone with nothing but Node and npm.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

const root = fileURLToPath(new URL("..", import.meta.url));
const stampPath = join(root, "node_modules", ".switchyard-lock");
const lockHash = createHash("sha256").update(readFileSync(join(root, "package-lock.json"))).digest("hex");
const stamp = existsSync(stampPath) ? readFileSync(stampPath, "utf8") : "";

if (stamp !== lockHash || !existsSync(join(root, "node_modules", "bun"))) {
  console.error("switchyard: installing dependencies (first start only)");
  const npm = process.env.npm_execpath;
  const [command, ...prefix] = npm ? [process.execPath, npm] : ["npm"];
  const result = spawnSync(command, [...prefix, "ci", "--no-audit", "--no-fund"], {
    cwd: root,
    stdio: ["ignore", process.stderr, process.stderr],
  });
  if (result.status !== 0) {
    console.error("switchyard: `npm ci` failed; see the lines above");
    process.exit(result.status ?? 1);
  }
  writeFileSync(stampPath, lockHash);
}

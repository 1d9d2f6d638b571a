// Installs the locked packages when they are absent or older than the lock file, so that `npm
// start` and `npm test` work on a fresh clone with nothing but Node and npm. What running needs is
// installed; `--tests` adds what tests and benches need. What `npm ci` has installed is kept. Module names have no `node:` prefix, and
// nothing here is newer than Node 12, so that an old Node can say that it is too old.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const modules = join(root, "node_modules");
const stampPath = join(modules, ".switchyard-lock");
const oldestNode = 20;

function fail(message, code) {
  console.error(`switchyard: ${message}`);
  process.exit(code);
}

if (Number(process.versions.node.split(".")[0]) < oldestNode) {
  fail(
    `Node ${process.versions.node} is too old: install Node ${oldestNode} or newer, then run this command again`,
    1,
  );
}

const lockText = readFileSync(join(root, "package-lock.json"));
const lockHash = createHash("sha256").update(lockText).digest("hex");
const forTests = process.argv.includes("--tests");
/** What was installed from which lock file; a bare hash is everything. */
const stamps = { running: `${lockHash} running`, all: lockHash };

function isInstalled() {
  if (!existsSync(join(modules, "bun"))) return false;
  const stamp = existsSync(stampPath) ? readFileSync(stampPath, "utf8") : "";
  return stamp === stamps.all || (!forTests && stamp === stamps.running);
}

/** Returns the packages of npm's own list; none where npm was stopped from writing it. */
function packagesIn(text) {
  try {
    return JSON.parse(text).packages || {};
  } catch {
    return {};
  }
}

/** Returns whether an optional package is the one for this machine, as far as its entry says it. */
const isForHere = ({ os = [], cpu = [], libc }) =>
  os.includes(process.platform) && cpu.includes(process.arch) && libc === undefined;

/**
 * Returns whether npm itself has installed what the lock file names, with its scripts: without them
 * Bun is a few lines. npm lists what it has installed in a lock file of its own.
 */
function isInstalledByNpm() {
  const listPath = join(modules, ".package-lock.json");
  const programPath = join(modules, "bun", "bin", "bun.exe");
  if (!existsSync(listPath) || !existsSync(programPath) || statSync(programPath).size < 1e6)
    return false;
  const present = packagesIn(readFileSync(listPath, "utf8"));
  const { packages: wanted = {} } = JSON.parse(lockText);
  return Object.keys(wanted)
    .filter((path) => path !== "" && (forTests || !wanted[path].dev))
    .every((path) => {
      const { version, integrity, optional } = wanted[path];
      const found = present[path];
      if (found === undefined) return optional && !isForHere(wanted[path]);
      return found.version === version && found.integrity === integrity;
    });
}

/** The number of packages that are in node_modules so far. */
function countPackages() {
  const names = (folder) =>
    existsSync(folder) ? readdirSync(folder).filter((name) => !name.startsWith(".")) : [];
  return names(modules).reduce(
    (sum, name) => sum + (name.startsWith("@") ? names(join(modules, name)).length : 1),
    0,
  );
}

/** Shows one line with the progress in a terminal; elsewhere nothing. */
function showProgress(startedMs) {
  if (!process.stderr.isTTY) return () => {};
  const draw = () => {
    const seconds = Math.round((Date.now() - startedMs) / 1000);
    process.stderr.write(`\r\u001b[2K  ${countPackages()} packages, ${seconds} s `);
  };
  draw();
  const timer = setInterval(draw, 200);
  return () => {
    clearInterval(timer);
    process.stderr.write("\r\u001b[2K");
  };
}

const npm = process.env.npm_execpath;
const [command, prefix] = npm ? [process.execPath, [npm]] : ["npm", []];
// Engine warnings are left out: packages name the Node that they need, and here they all run on the
// installed Bun.
const parameters = [
  "ci",
  "--no-audit",
  "--no-fund",
  "--loglevel=error",
  forTests ? "--include=dev" : "--omit=dev",
];

const networkFailure =
  /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT)\b/;

function explainFailure(complaint, code) {
  const unreachable = networkFailure.exec(complaint);
  if (unreachable === null) {
    console.error(complaint.trimEnd());
    fail("`npm ci` failed, see the lines above", code);
  }
  fail(
    `the first start downloads packages, and npm's registry cannot be reached (${unreachable[0]}): ` +
      "connect this machine, or set npm's `registry` or `proxy`, then run this command again",
    code,
  );
}

function install() {
  const startedMs = Date.now();
  console.error(
    `switchyard: installing ${forTests ? "everything that tests need" : "what running needs"} (once, up to a minute)`,
  );
  // A registry that cannot be reached is reported after seconds instead of npm's minutes.
  const env = {
    npm_config_fetch_retry_mintimeout: "1000",
    npm_config_fetch_retry_maxtimeout: "5000",
    ...process.env,
  };
  const child = spawn(command, [...prefix, ...parameters], {
    cwd: root,
    stdio: ["ignore", "ignore", "pipe"],
    env,
  });
  const endProgress = showProgress(startedMs);
  let complaint = "";
  child.stderr.on("data", (chunk) => (complaint = (complaint + chunk).slice(-20_000)));
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => child.kill(signal));
  child.once("error", (error) => {
    endProgress();
    fail(`npm could not be run: ${error.message}`, 1);
  });
  child.once("close", (code) => {
    endProgress();
    if (code !== 0) return explainFailure(complaint, code === null ? 1 : code);
    stampNow();
    console.error(
      `switchyard: installed ${countPackages()} packages in ${Math.round((Date.now() - startedMs) / 1000)} s`,
    );
  });
}

const stampNow = () => writeFileSync(stampPath, forTests ? stamps.all : stamps.running);
if (!isInstalled()) {
  if (isInstalledByNpm()) stampNow();
  else install();
}

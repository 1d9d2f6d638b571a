// Checks the types, runs every test, and ends with one line that says how many passed and failed.
// Further arguments are handed to `bun test`; paths among them replace the default folders.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folders = ["src", "test", "bench", "scripts", "examples"];
const testTimeoutMs = 60_000;
/** More than the last lines of `bun test`, which are all that is parsed. */
const keptCharacters = 16_384;

const program = (name) => join(root, "node_modules", ".bin", name);

/**
 * Runs a program, shows its output as it comes, and gives its exit code and the end of its output.
 */
function run(name, parameters) {
  return new Promise((resolve) => {
    const child = spawn(program(name), parameters, {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "16384" },
    });
    let end = "";
    let line = "";
    const skips = [];
    const show = (stream) => (chunk) => {
      stream.write(chunk);
      end = (end + chunk).slice(-keptCharacters);
      const lines = (line + chunk).split("\n");
      line = lines.pop().slice(-keptCharacters);
      for (const each of lines) {
        const plain = each.replaceAll(/\u001b\[[0-9;]*m/g, "");
        if (/^(?:\(skip\)|») /.test(plain)) skips.push(plain);
      }
    };
    child.stdout.on("data", show(process.stdout));
    child.stderr.on("data", show(process.stderr));
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => child.kill(signal));
    child.once("error", (error) =>
      resolve({ code: 1, end: `${name} could not be run: ${error.message}`, skips }),
    );
    child.once("close", (code) => resolve({ code, end, skips }));
  });
}

/**
 * The number before a word in the summary, such as ` 12 pass`; the last one, should a test print
 * one of its own.
 */
function count(summary, word) {
  const matches = [...summary.matchAll(new RegExp(`^\\s*(\\d+) ${word}s?$`, "gm"))];
  return Number(matches.at(-1)?.[1] ?? 0);
}

/** How many tests were skipped for want of what; a title says `(missing: what)`. */
function skipReasons(skips) {
  const counts = new Map();
  for (const line of skips) {
    const reason =
      /\(missing: (.*?)\)(?: >|$|\s)/.exec(line)?.[1] ??
      "something else that this machine lacks, which their titles name";
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return counts;
}

/**
 * What `.ci/run` installs, by the words of the reasons; with TESTS_MUST_RUN set, a run that lacks
 * one of them has failed.
 */
const installable = /redis-server|python|test-clients|curl|nginx|chromium/;

/** Whether an argument names files rather than an option of `bun test`. */
const isPath = (parameter) =>
  !parameter.startsWith("-") && (parameter.includes("/") || existsSync(join(root, parameter)));

function testParameters(given) {
  const paths = given.some(isPath)
    ? []
    : folders.filter((folder) => existsSync(join(root, folder))).map((folder) => `./${folder}`);
  const timeout = given.some((parameter) => parameter.startsWith("--timeout"))
    ? []
    : ["--timeout", String(testTimeoutMs)];
  return ["test", ...timeout, ...paths, ...given];
}

/**
 * The projects whose types are checked: the server with its tests, and the dashboard, which runs in
 * browsers.
 */
const projects = [root, join(root, "dashboard")].filter(
  (folder) => existsSync(join(folder, "tsconfig.json")) || folder === root,
);
const types = { code: 0 };
for (const project of projects)
  types.code ||= (await run("tsc", ["--noEmit", "-p", project])).code ?? 1;
const tests = await run("bun", testParameters(process.argv.slice(2)));

const summary = tests.end.replaceAll(/\u001b\[[0-9;]*m/g, "");
const passed = count(summary, "pass");
const skipped = count(summary, "skip") + count(summary, "todo");
const broken = count(summary, "fail") + count(summary, "error");
const reasons = skipReasons(tests.skips);
const lacking = process.env.TESTS_MUST_RUN
  ? [...reasons.keys()].filter((reason) => installable.test(reason))
  : [];
// A run that ended badly without naming a test that failed has failed as a whole.
const failed =
  (broken > 0 || tests.code === 0 ? broken : 1) + (types.code === 0 ? 0 : 1) + lacking.length;

if (types.code !== 0)
  console.error("tsc found errors; they stand above and count as one failed test");
if (tests.code === null) console.error("bun test was ended by a signal");
for (const [reason, number] of reasons) console.log(`skipped ${number}: missing ${reason}`);
for (const reason of lacking)
  console.error(
    `TESTS_MUST_RUN is set, and ${reason} could have been installed; it counts as one failed test`,
  );
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

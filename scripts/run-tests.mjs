// Checks the types beside running every test, and ends with one line that says how many passed and
// failed. Test files are shared among several processes; those of `alone` in test/suite.json run one
// after another at the end. Arguments: paths that replace the default folders, `--engines=all` (what
// runs on SQLite by default runs on every engine), `--record-timings` (writes test/timings.json), and
// options of `bun test`.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, totalmem } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeMemoryFolder } from "./test-run/memory-folder.mjs";
import { ProgramRunner } from "./test-run/program-runner.mjs";
import { failureLines, skipReasons, slowestLines } from "./test-run/report.mjs";
import { startSharedPart } from "./test-run/shared-part.mjs";
import { readSuite, selectFiles, workerCount } from "./test-run/test-files.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const timingsPath = join(root, "test", "timings.json");
const testTimeoutMs = 600_000;
/** A file that takes longer is named at the end, unless test/suite.json gives a reason. */
const fileMsMax = 60_000;

/** Fewer files make on their own what they need, and run the gateway from its sources. */
const sharingFiles = 20;
/** What the processes of a run share; nightly, every gateway is run from its sources. */
const sharedParts = process.argv.includes("--engines=all")
  ? ["shared-postgres.ts"]
  : ["shared-postgres.ts", "shared-program.ts"];

const temporary = mkdtempSync(join(tmpdir(), "switchyard-run-tests-"));
process.once("exit", () => rmSync(temporary, { recursive: true, force: true }));

/** The compiler, of tests as well, collects garbage more rarely where there is memory for it. */
const compilerMemory = totalmem() >= 16e9 ? { GOGC: "400", GOMEMLIMIT: "4GiB" } : {};

/** The environment of the tests; `bun test` prints less, or in groups, where it finds the others. */
const { AGENT: _, CLAUDECODE: __, REPL_ID: ___, GITHUB_ACTIONS: ____, ...inherited } = process.env;
const environment = {
  ...inherited,
  ...compilerMemory,
  BUN_CONFIG_MAX_HTTP_REQUESTS: "16384",
};

const runner = new ProgramRunner({ root, environment });
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => runner.stop(signal));

/**
 * The projects whose types are checked: the server with its tests, and the dashboard, which runs in
 * browsers.
 */
const projects = [root, join(root, "dashboard")].filter(
  (folder) => existsSync(join(folder, "tsconfig.json")) || folder === root,
);

/**
 * Checks the types of every project, and only those of changed files where it did so before; where
 * each run begins with a fresh clone, nothing is written down for a next one, which takes an eighth
 * more. Returns a failure where there are errors. Each checker has types of its own: on two cores
 * one is as fast as four, for half of the CPU.
 */
async function checkTypes() {
  const lines = [];
  let failed = false;
  for (const project of projects) {
    const known = join(root, "node_modules", ".cache", "types", `${basename(project)}.tsbuildinfo`);
    const incremental = process.env.CI ? [] : ["--incremental", "--tsBuildInfoFile", known];
    const parameters = ["--noEmit", "-p", project, ...incremental, "--checkers", "1"];
    const code = await runner.run("tsc", parameters, (line) => lines.push(line));
    failed ||= code !== 0;
  }
  for (const line of lines) console.log(line);
  return failed ? [{ file: "tsc", title: "", lines, command: "npm run typecheck" }] : [];
}

/** Whether an argument names files rather than an option of `bun test`. */
const isPath = (parameter) =>
  !parameter.startsWith("-") && (parameter.includes("/") || existsSync(join(root, parameter)));

const own = ["--engines=all", "--record-timings"];
const given = process.argv.slice(2);
const paths = given.filter(isPath);
const options = given.filter((parameter) => !isPath(parameter) && !own.includes(parameter));
const isWhole = options.length === 0;
if (given.includes("--engines=all")) environment["TEST_ENGINES"] = "all";
if (!options.some((option) => option.startsWith("--timeout")))
  options.unshift("--timeout", String(testTimeoutMs));

/** Durations of the files of this run, which `bun test` writes beside what was recorded before. */
const measuredPath = join(temporary, "timings.json");
const recorded = existsSync(timingsPath) ? [`--timings=${timingsPath}`] : [];
const timing = [`--timings=${measuredPath}`, ...recorded, "--update-timings"];

/** Runs the tests, with what all processes share where there are enough files to need it. */
async function runTests(files, suite) {
  const names = files.length >= sharingFiles ? sharedParts : [];
  const parts = await Promise.all(names.map((name) => startSharedPart(root, name)));
  // The shared Postgres keeps the databases of every test, which are too many for memory.
  const memoryFolder = files.length >= sharingFiles ? makeMemoryFolder() : undefined;
  if (memoryFolder !== undefined) {
    environment["TMPDIR"] = memoryFolder;
    // Processes of tests keep free memory: a thread that gives it back takes 2 % of a whole run.
    environment["MIMALLOC_PURGE_DELAY"] = "-1";
  }
  for (const { variables } of parts) Object.assign(environment, variables);
  try {
    return await runFiles(files, suite);
  } finally {
    await Promise.all(parts.map((part) => part.stop()));
  }
}

async function runFiles(files, suite) {
  const runs = [];
  const durations = new Map();
  const beside = files.filter((file) => suite.alone[file] === undefined);
  const workers = Math.min(workerCount(), beside.length);
  const parallel = workers > 1 ? [`--parallel=${workers}`, "--no-isolate"] : [];
  if (beside.length > 0)
    runs.push(await runner.test(beside, [...options, ...parallel, ...timing], isWhole));
  if (existsSync(measuredPath)) {
    const { files: measured } = JSON.parse(readFileSync(measuredPath, "utf8"));
    for (const file of beside)
      if (measured[file] !== undefined) durations.set(file, measured[file]);
  }
  for (const file of files.filter((each) => suite.alone[each] !== undefined)) {
    if (runner.stopped) break;
    const startedMs = performance.now();
    runs.push(await runner.test([file], options, isWhole));
    durations.set(file, Math.round(performance.now() - startedMs));
  }
  return { runs, durations };
}

const suite = readSuite(root);
const files = selectFiles(root, paths);
const startedMs = performance.now();
const [typeFailures, { runs, durations }] = await Promise.all([
  checkTypes(),
  runTests(files, suite),
]);

const sum = (field) => runs.reduce((total, each) => total + each[field], 0);
const reasons = skipReasons(runs.flatMap(({ skips }) => skips));
/**
 * What `.ci/run` installs, by the words of the reasons; with TESTS_MUST_RUN set, a run that lacks
 * one of them has failed.
 */
const installable = /redis-server|python|test-clients|curl|nginx|chromium/;
const lacking = [...reasons.keys()]
  .filter((reason) => process.env.TESTS_MUST_RUN && installable.test(reason))
  .map((reason) => ({
    file: "TESTS_MUST_RUN",
    title: "",
    lines: [`error: it is set, and ${reason} could have been installed`],
    command: ".ci/run",
  }));
const failures = [...typeFailures, ...runs.flatMap((each) => each.failures), ...lacking];
const [passed, skipped] = [sum("passed"), sum("skipped")];
const failed = sum("failed") + typeFailures.length + lacking.length;

if (given.includes("--record-timings")) writeTimings(durations);
if (durations.size > 1) for (const line of slowestLines(durations)) console.log(line);
for (const [file, milliseconds] of durations)
  if (milliseconds > fileMsMax && suite.slow[file] === undefined)
    console.log(
      `${file} took more than ${fileMsMax / 1_000} s; test/suite.json gives no reason for it`,
    );
console.log(`${files.length} files in ${Math.round((performance.now() - startedMs) / 1_000)} s`);
for (const [reason, number] of reasons) console.log(`skipped ${number}: missing ${reason}`);
for (const line of failureLines(failures)) console.log(line);
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

/** Records the durations that decide which files start first, rounded so that they differ rarely. */
function writeTimings(measured) {
  const before = existsSync(timingsPath) ? JSON.parse(readFileSync(timingsPath, "utf8")).files : {};
  const present = new Set(selectFiles(root, []));
  const merged = Object.entries({ ...before, ...Object.fromEntries(measured) })
    .filter(([file]) => present.has(file))
    .map(([file, milliseconds]) => [file, Math.ceil(milliseconds / 100) * 100])
    .sort(([left], [right]) => (left < right ? -1 : 1));
  const text = JSON.stringify({ version: 1, files: Object.fromEntries(merged) }, null, 2);
  writeFileSync(timingsPath, `${text}\n`);
}

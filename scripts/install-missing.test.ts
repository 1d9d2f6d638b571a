import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "switchyard-install-"));
  mkdirSync(join(root, "scripts"));
  copyFileSync(
    join(import.meta.dir, "install-missing.mjs"),
    join(root, "scripts", "install-missing.mjs"),
  );
  writeFileSync(join(root, "package-lock.json"), '{"lockfileVersion":3}');
  // A fake npm: notes how it was called, and installs what the script looks for.
  writeFileSync(
    join(root, "npm.mjs"),
    `
    import { appendFileSync, mkdirSync } from "node:fs";
    appendFileSync("calls.txt", process.argv.slice(2).join(" ") + "\\n");
    if (process.env.NPM_FAILS) console.error(process.env.NPM_FAILS), process.exit(7);
    mkdirSync("node_modules/bun", { recursive: true });
  `,
  );
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function run(
  environment: Record<string, string> = {},
  ...parameters: string[]
): { status: number; output: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(
    ["node", join(root, "scripts", "install-missing.mjs"), ...parameters],
    {
      cwd: tmpdir(),
      env: { ...process.env, npm_execpath: join(root, "npm.mjs"), ...environment },
    },
  );
  expect(stdout.toString()).toBe("");
  return { status: exitCode, output: stderr.toString() };
}

const calls = (): string[] =>
  existsSync(join(root, "calls.txt"))
    ? readFileSync(join(root, "calls.txt"), "utf8").trim().split("\n")
    : [];

const running = "ci --no-audit --no-fund --loglevel=error --omit=dev";

test("installs the locked packages on the first run, and nothing on the next ones", () => {
  expect(run()).toMatchObject({ status: 0, output: expect.stringContaining("installing") });
  expect(run()).toEqual({ status: 0, output: "" });
  expect(run()).toEqual({ status: 0, output: "" });
  expect(calls()).toEqual([running]);
});

test("adds packages for tests only with --tests, and keeps them for later starts", () => {
  run();
  expect(run({}, "--tests")).toMatchObject({
    status: 0,
    output: expect.stringContaining("everything that tests need"),
  });
  run({}, "--tests");
  run();
  expect(calls()).toEqual([running, "ci --no-audit --no-fund --loglevel=error --include=dev"]);
});

/** Leaves what `npm ci` leaves: the packages, and npm's own list of them. */
function leaveInstalled(listed: object, programBytes: number): void {
  const wanted = {
    "": { name: "switchyard" },
    "node_modules/bun": { version: "1.0.0", integrity: "sha512-a" },
    "node_modules/tester": { version: "2.0.0", integrity: "sha512-b", dev: true },
    "node_modules/elsewhere": { version: "1.0.0", optional: true, os: ["aix"] },
    "node_modules/here": {
      version: "3.0.0",
      optional: true,
      os: [process.platform],
      cpu: [process.arch],
    },
  };
  const folder = join(root, "node_modules", "bun", "bin");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "bun.exe"), Buffer.alloc(programBytes));
  writeFileSync(join(root, "package-lock.json"), JSON.stringify({ packages: wanted }));
  const { "": _, "node_modules/elsewhere": __, ...here } = wanted;
  const list = JSON.stringify({ packages: { ...here, ...listed } });
  writeFileSync(join(root, "node_modules", ".package-lock.json"), list);
}

test("keeps what `npm ci` has installed", () => {
  leaveInstalled({}, 2e6);
  expect(run()).toEqual({ status: 0, output: "" });
  expect(run({}, "--tests")).toEqual({ status: 0, output: "" });
  expect(run({}, "--tests")).toEqual({ status: 0, output: "" });
  expect(calls()).toEqual([]);
});

test.each([
  ["another version", { "node_modules/bun": { version: "1.0.1", integrity: "sha512-c" } }, 2e6],
  ["no packages for this machine", { "node_modules/here": undefined }, 2e6],
  ["no result of its scripts", {}, 600],
])("installs again where `npm ci` left %s", (_, listed, programBytes) => {
  leaveInstalled(listed, programBytes);
  run();
  expect(calls()).toEqual([running]);
});

test("installs again where npm was stopped from writing its list", () => {
  leaveInstalled({}, 2e6);
  writeFileSync(join(root, "node_modules", ".package-lock.json"), '{"packages":{"');
  expect(run().status).toBe(0);
  expect(calls()).toEqual([running]);
});

test("adds what tests need where `npm ci` left it out", () => {
  leaveInstalled({ "node_modules/tester": undefined }, 2e6);
  expect(run().status).toBe(0);
  expect(calls()).toEqual([]);
  run({}, "--tests");
  expect(calls()).toHaveLength(1);
});

test("installs again once the lock file has changed or the modules are gone", () => {
  run();
  writeFileSync(join(root, "package-lock.json"), '{"lockfileVersion":3,"packages":{}}');
  run();
  rmSync(join(root, "node_modules", "bun"), { recursive: true });
  run();
  run();
  expect(calls()).toHaveLength(3);
});

test("passes on npm's failure and tries again on the next run", () => {
  expect(run({ NPM_FAILS: "npm error something else" })).toMatchObject({
    status: 7,
    output: expect.stringMatching(
      /npm error something else\nswitchyard: `npm ci` failed, see the lines above\n$/,
    ),
  });
  expect(existsSync(join(root, "node_modules", ".switchyard-lock"))).toBe(false);
  expect(run().status).toBe(0);
  expect(calls()).toHaveLength(2);
});

test("reports an unreachable registry in one sentence", () => {
  const complaint = "npm error code ENOTFOUND\nnpm error network request to the registry failed";
  const { status, output } = run({ NPM_FAILS: complaint });
  expect(status).toBe(7);
  expect(output.split("\n").slice(1)).toEqual([
    "switchyard: the first start downloads packages, and npm's registry cannot be reached (ENOTFOUND): " +
      "connect this machine, or set npm's `registry` or `proxy`, then run this command again",
    "",
  ]);
});

test("reports an outdated Node in one sentence and installs nothing", () => {
  writeFileSync(
    join(root, "old.cjs"),
    'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "18.20.8" } });',
  );
  expect(run({ NODE_OPTIONS: `--require ${join(root, "old.cjs")}` })).toEqual({
    status: 1,
    output:
      "switchyard: Node 18.20.8 is too old: install Node 20 or newer, then run this command again\n",
  });
  expect(calls()).toEqual([]);
});

const shows = "shows its progress when it runs in a terminal";
test.skipIf(Bun.which("script") === null)(
  Bun.which("script") === null ? `${shows} (missing: script)` : shows,
  () => {
    const script = `exec ${Bun.which("node")} ${join(root, "scripts", "install-missing.mjs")}`;
    const { exitCode, stdout } = Bun.spawnSync(["script", "-qec", script, "/dev/null"], {
      env: { ...process.env, npm_execpath: join(root, "npm.mjs") },
    });
    expect(exitCode).toBe(0);
    expect(stdout.toString()).toMatch(/\d+ packages, \d+ s/);
  },
);

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
  // Stands for npm: notes how it was called, and installs what the script looks for.
  writeFileSync(
    join(root, "npm.mjs"),
    `
    import { appendFileSync, mkdirSync } from "node:fs";
    appendFileSync("calls.txt", process.argv.slice(2).join(" ") + "\\n");
    if (process.env.NPM_FAILS) process.exit(7);
    mkdirSync("node_modules/bun", { recursive: true });
  `,
  );
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function run(environment: Record<string, string> = {}): { status: number; output: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(
    ["node", join(root, "scripts", "install-missing.mjs")],
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

test("installs what is locked on the first run, and nothing on the next ones", () => {
  expect(run()).toMatchObject({ status: 0, output: expect.stringContaining("installing") });
  expect(run()).toEqual({ status: 0, output: "" });
  expect(run()).toEqual({ status: 0, output: "" });
  expect(calls()).toEqual(["ci --no-audit --no-fund"]);
});

test("installs again once the lock file has changed, or the modules are gone", () => {
  run();
  writeFileSync(join(root, "package-lock.json"), '{"lockfileVersion":3,"packages":{}}');
  run();
  rmSync(join(root, "node_modules", "bun"), { recursive: true });
  run();
  run();
  expect(calls()).toHaveLength(3);
});

test("hands on npm's failure, and tries again on the next run", () => {
  expect(run({ NPM_FAILS: "1" })).toMatchObject({
    status: 7,
    output: expect.stringContaining("failed"),
  });
  expect(existsSync(join(root, "node_modules", ".switchyard-lock"))).toBe(false);
  expect(run().status).toBe(0);
  expect(calls()).toHaveLength(2);
});

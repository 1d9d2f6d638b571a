import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
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
  root = mkdtempSync(join(tmpdir(), "switchyard-run-tests-"));
  for (const folder of ["scripts", "src", "test", "node_modules/.bin"])
    mkdirSync(join(root, folder), { recursive: true });
  copyFileSync(join(import.meta.dir, "run-tests.mjs"), join(root, "scripts", "run-tests.mjs"));
  stand("tsc", "exit 0");
  stand("bun", 'echo " 1 pass" >&2');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Puts a shell script in the place of a program; it notes its arguments. */
function stand(name: string, script: string): void {
  const path = join(root, "node_modules", ".bin", name);
  writeFileSync(path, `#!/bin/sh\necho "$@" > ${join(root, `${name}.arguments`)}\n${script}\n`);
  chmodSync(path, 0o755);
}

const argumentsOf = (name: string): string => {
  const path = join(root, `${name}.arguments`);
  return existsSync(path) ? readFileSync(path, "utf8").trim() : "";
};

function run(...parameters: string[]): { status: number; lines: string[] } {
  const { exitCode, stdout } = Bun.spawnSync(
    ["node", join(root, "scripts", "run-tests.mjs"), ...parameters],
    { cwd: tmpdir() },
  );
  return { status: exitCode, lines: stdout.toString().trimEnd().split("\n") };
}

describe("the last line and the exit code for", () => {
  const cases: Record<string, { bun?: string; tsc?: string; line: string; status: number }> = {
    "all passed": {
      bun: "echo ' 12 pass\n 0 fail\nRan 12 tests' >&2",
      line: "12 passed, 0 failed",
      status: 0,
    },
    "some failed": {
      bun: "echo ' 12 pass\n 3 fail' >&2; exit 1",
      line: "12 passed, 3 failed",
      status: 1,
    },
    "some were skipped": {
      bun: "echo ' 12 pass\n 2 skip\n 1 todo\n 0 fail' >&2",
      line: "12 passed, 0 failed, 3 skipped",
      status: 0,
    },
    "errors outside of tests": {
      bun: "echo ' 12 pass\n 0 fail\n 1 error' >&2; exit 1",
      line: "12 passed, 1 failed",
      status: 1,
    },
    "a coloured summary": {
      bun: "printf '\\033[32m 12 pass\\033[0m\\n 0 fail\\n' >&2",
      line: "12 passed, 0 failed",
      status: 0,
    },
    "a truncated run": {
      bun: "echo '(pass) one'; kill -9 $$",
      line: "0 passed, 1 failed",
      status: 1,
    },
    "a failed run without a reason": {
      bun: "echo ' 5 pass\n 0 fail' >&2; exit 1",
      line: "5 passed, 1 failed",
      status: 1,
    },
    "a run without tests": {
      bun: "echo ' 0 pass\n 0 fail' >&2",
      line: "0 passed, 0 failed",
      status: 1,
    },
    "type errors": {
      tsc: "echo 'x.ts(1,1): error TS1'; exit 2",
      line: "1 passed, 1 failed",
      status: 1,
    },
    "a test that prints its own summary": {
      bun: "echo ' 99 pass' >&2; echo ' 2 pass\n 0 fail' >&2",
      line: "2 passed, 0 failed",
      status: 0,
    },
  };

  test.each(Object.entries(cases))("%s", (_, { bun, tsc, line, status }) => {
    if (bun !== undefined) stand("bun", bun);
    if (tsc !== undefined) stand("tsc", tsc);
    const ended = run();
    expect([ended.lines.at(-1), ended.status]).toEqual([line, status]);
  });
});

describe("the command line of the test run", () => {
  test("every folder with tests, with a minute for each test", () => {
    run();
    expect(argumentsOf("tsc")).toBe(`--noEmit -p ${root}/`);
    expect(argumentsOf("bun")).toBe("test --timeout 60000 ./src ./test ./scripts");
  });

  test("the named paths instead, with further options", () => {
    run("src/account", "-t", "a name", "--bail");
    expect(argumentsOf("bun")).toBe("test --timeout 60000 src/account -t a name --bail");
  });

  test("every folder when only options are given, and a given time limit", () => {
    run("--bail", "--timeout=5");
    expect(argumentsOf("bun")).toBe("test ./src ./test ./scripts --bail --timeout=5");
  });
});

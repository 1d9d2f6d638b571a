import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const testFiles = ["scripts/c.test.ts", "src/a.test.ts", "test/b.test.ts", "test/d.test.ts"];
/** Prints the name of each file that is run, as `bun test` does. */
const headers = 'for f in "$@"; do case "$f" in *.test.ts) echo "${f#./}:" >&2;; esac; done';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "switchyard-run-tests-"));
  for (const folder of ["scripts", "src", "test", "node_modules/.bin"])
    mkdirSync(join(root, folder), { recursive: true });
  for (const path of ["run-tests.mjs", "test-run"])
    cpSync(join(import.meta.dir, path), join(root, "scripts", path), { recursive: true });
  for (const path of testFiles) writeFileSync(join(root, path), "");
  stand("tsc", "exit 0");
  stand("bun", `${headers}; echo " 1 pass" >&2`);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Puts a shell script in the place of a program; it notes its arguments. */
function stand(name: string, script: string): void {
  const path = join(root, "node_modules", ".bin", name);
  writeFileSync(path, `#!/bin/sh\necho "$@" >> ${join(root, `${name}.arguments`)}\n${script}\n`);
  chmodSync(path, 0o755);
}

const argumentsOf = (name: string): string => {
  const path = join(root, `${name}.arguments`);
  return existsSync(path) ? readFileSync(path, "utf8").trim() : "";
};

interface Ended {
  status: number;
  lines: string[];
}

const run = (...parameters: string[]): Ended => runWhere({ CI: "" }, ...parameters);

function runWhere(variables: Readonly<Record<string, string>>, ...parameters: string[]): Ended {
  const { exitCode, stdout } = Bun.spawnSync(
    ["node", join(root, "scripts", "run-tests.mjs"), ...parameters],
    { cwd: tmpdir(), env: { ...process.env, ...variables } },
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
    if (bun !== undefined) stand("bun", `${headers}; ${bun}`);
    if (tsc !== undefined) stand("tsc", tsc);
    const ended = run();
    expect([ended.lines.at(-1), ended.status]).toEqual([line, status]);
  });
});

const writeSuite = (suite: unknown): void =>
  writeFileSync(join(root, "test", "suite.json"), JSON.stringify(suite));

/** Returns the files of each `bun test` that was started. */
const startedFiles = (): string[][] =>
  argumentsOf("bun")
    .split("\n")
    .map((line) => line.split(" ").filter((word) => word.startsWith("./")));

describe("the command line of the test run", () => {
  test("every file with tests, with ten minutes for each test", () => {
    run();
    expect(argumentsOf("tsc")).toStartWith(`--noEmit -p ${root}/ --incremental `);
    expect(argumentsOf("bun")).toStartWith("test --timeout 600000 ");
    expect(startedFiles()).toEqual([
      ["./src/a.test.ts", "./test/b.test.ts", "./test/d.test.ts", "./scripts/c.test.ts"],
    ]);
  });

  test("types checked without a record of it where no next run would find one", () => {
    runWhere({ CI: "true" });
    expect(argumentsOf("tsc")).toBe(`--noEmit -p ${root}/ --checkers 1`);
  });

  test("the named paths instead, with further options", () => {
    run("./src", "test/d", "-t", "a name", "--bail");
    expect(argumentsOf("bun")).toStartWith("test --timeout 600000 -t a name --bail ");
    expect(startedFiles()).toEqual([["./src/a.test.ts", "./test/d.test.ts"]]);
  });

  test("every file when only options are given, and a given time limit", () => {
    run("--bail", "--timeout=5");
    expect(argumentsOf("bun")).toStartWith("test --bail --timeout=5 ");
    expect(startedFiles()[0]).toHaveLength(4);
  });

  test("the files that disturb others alone and at the end, and every file once", () => {
    writeSuite({ alone: { "src/a.test.ts": "measures", "test/d.test.ts": "too" }, slow: {} });
    expect(run().lines.at(-1)).toBe("3 passed, 0 failed");
    expect(startedFiles()).toEqual([
      ["./test/b.test.ts", "./scripts/c.test.ts"],
      ["./src/a.test.ts"],
      ["./test/d.test.ts"],
    ]);
  });

  test("every engine where asked for, without handing that to bun", () => {
    stand("bun", `${headers}; echo " 1 pass" >&2; echo "engines: $TEST_ENGINES"`);
    expect(run("--engines=all").lines).toContain("engines: all");
    expect(argumentsOf("bun")).not.toContain("--engines");
  });
});

describe("the end of the output", () => {
  test("repeats each failure with its file, its message and the command that repeats it", () => {
    const output = [
      "src/a.test.ts:",
      "(pass) fine [0.10ms]",
      "12 |   expect(1).toBe(2);",
      "error: expect(received).toBe(expected)",
      "Expected: 2",
      "      at <anonymous> (/x/src/a.test.ts:1:1)",
      "(fail) a group > it's (one) [0.30ms]",
      "✗ test/b.test.ts (worker crashed: SIGKILL)",
      "test/d.test.ts:",
      "",
      "# Unhandled error between tests",
      "-------------------------------",
      "error: at load",
      "-------------------------------",
      "(fail) slow [60000.00ms]",
      "  ^ this test timed out after 60000ms.",
      "scripts/c.test.ts:",
      " 1 pass",
      " 4 fail",
    ];
    writeFileSync(join(root, "output"), `${output.join("\n")}\n`);
    stand("bun", `cat ${join(root, "output")} >&2; exit 1`);
    stand("tsc", "echo 'x.ts(1,1): error TS1: no'; exit 2");
    const { lines } = run();
    const end = lines.slice(-50).join("\n");
    for (const text of [
      "failed: tsc\n    x.ts(1,1): error TS1: no\n    again: npm run typecheck",
      "failed: src/a.test.ts > a group > it's (one)\n    error: expect(received).toBe(expected)\n    Expected: 2\n" +
        `    again: npx bun test --timeout 60000 ./src/a.test.ts -t 'a group it'\\''s \\(one\\)'`,
      "failed: test/b.test.ts\n    error: its process crashed: SIGKILL\n    again: npx bun test --timeout 60000 ./test/b.test.ts",
      "failed: test/d.test.ts\n    error: at load\n",
      "failed: test/d.test.ts > slow\n    error: this test timed out after 60000ms.\n",
    ])
      expect(end).toContain(text);
    expect(lines.at(-1)).toBe("1 passed, 5 failed");
  });

  test("names files that were found and not run", () => {
    stand("bun", "echo 'src/a.test.ts:' >&2; echo ' 1 pass' >&2");
    const { status, lines } = run();
    expect(lines.join("\n")).toContain(
      "did not run test/b.test.ts, test/d.test.ts, scripts/c.test.ts",
    );
    expect([lines.at(-1), status]).toEqual(["1 passed, 1 failed", 1]);
  });

  test("keeps failures within the last fifty lines, however many there are", () => {
    const failures = Array.from(
      { length: 300 },
      (_, index) => `error: no ${index}\n(fail) t${index}`,
    );
    writeFileSync(
      join(root, "output"),
      `src/a.test.ts:\n${failures.join("\n")}\n 0 pass\n 300 fail\n`,
    );
    stand("bun", `cat ${join(root, "output")} >&2; exit 1`);
    const end = run("src").lines.slice(-50);
    expect(end.at(-1)).toBe("0 passed, 300 failed");
    expect(end.at(-2)).toBe("and 255 more, which stand above");
    expect(end).toContain(
      "src/a.test.ts > t0: error: no 0 | npx bun test --timeout 60000 ./src/a.test.ts -t 't0'",
    );
  });
});

describe("test/suite.json", () => {
  const real = join(import.meta.dir, "..");
  const suite = JSON.parse(readFileSync(join(real, "test", "suite.json"), "utf8"));
  const timings = JSON.parse(readFileSync(join(real, "test", "timings.json"), "utf8"));

  test.each(["alone", "slow"])("%s names files that exist, each with a reason", (list) => {
    for (const [file, reason] of Object.entries<string>(suite[list])) {
      expect([file, existsSync(join(real, file))]).toEqual([file, true]);
      expect(reason.length).toBeGreaterThan(20);
    }
  });

  test("gives a reason for every file whose recorded time is above a minute", () => {
    const slow = Object.entries<number>(timings.files).filter(([, ms]) => ms > 60_000);
    expect(slow.map(([file]) => file).filter((file) => suite.slow[file] === undefined)).toEqual([]);
  });
});

// Runs `tsc` and `bun test` as child processes, and turns the output of the latter into counts and
// failures. A process that crashes, or that leaves files out, has failed, and the files are named.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { BunOutput } from "./bun-output.mjs";

/** Calls `onLine` with each line of a stream, and with the rest at its end. */
function readLines(stream, onLine) {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    for (const line of lines) onLine(line);
  });
  stream.on("end", () => rest !== "" && onLine(rest));
}

/** Returns the failure of a run that left files out, or that failed without naming a test. */
function lossOf({ files, output, code, broken, isWhole }) {
  const how = code === null ? "was ended by a signal" : `ended with ${code}`;
  const missing = isWhole || code === null ? files.filter((file) => !output.files.has(file)) : [];
  if (missing.length > 0)
    return {
      file: missing[0],
      title: "",
      lines: [`error: bun test ${how} and did not run ${missing.join(", ")}`],
      command: `npm test -- ${missing.slice(0, 20).join(" ")}`,
    };
  if (broken > 0 || (code === 0 && output.ended)) return undefined;
  const last = [...output.files].at(-1) ?? "bun test";
  return {
    file: last,
    title: "",
    lines: [`error: bun test ${how} without naming a test that failed; this was its last file`],
    command: `npm test -- ${files.includes(last) ? last : ""}`.trim(),
  };
}

/** Runs programs of node_modules/.bin until it is stopped. */
export class ProgramRunner {
  stopped = false;
  #root;
  #environment;
  #children = new Set();

  constructor({ root, environment }) {
    this.#root = root;
    this.#environment = environment;
  }

  /** Hands a signal to what runs. */
  stop(signal) {
    this.stopped = true;
    for (const child of this.#children) child.kill(signal);
  }

  /** Runs a program, gives each line that it prints to `onLine`, and returns its exit code. */
  run(name, parameters, onLine) {
    return new Promise((resolve) => {
      const child = spawn(join(this.#root, "node_modules", ".bin", name), parameters, {
        cwd: this.#root,
        stdio: ["ignore", "pipe", "pipe"],
        env: this.#environment,
      });
      this.#children.add(child);
      readLines(child.stdout, (line) => onLine(line, process.stdout));
      readLines(child.stderr, (line) => onLine(line, process.stderr));
      child.once("error", (error) => {
        onLine(`${name} could not be run: ${error.message}`, process.stderr);
        resolve(1);
      });
      child.once("close", (code) => {
        this.#children.delete(child);
        resolve(code);
      });
    });
  }

  /**
   * Runs `bun test` over files. `isWhole` says that every file has to be run, as without options
   * that stop early.
   */
  async test(files, options, isWhole) {
    const output = new BunOutput();
    const parameters = ["test", ...options, ...files.map((file) => `./${file}`)];
    const code = await this.run("bun", parameters, (line, stream) => {
      stream.write(`${line}\n`);
      if (stream === process.stderr) output.read(line);
    });
    const { counts } = output;
    // An error at the load of a file is counted twice, as an error and as a failed test.
    const named = Math.max(output.failures.length, counts.fail ?? 0, counts.error ?? 0);
    const broken = output.ended ? named : output.failures.length;
    const loss = lossOf({ files, output, code, broken, isWhole });
    return {
      passed: output.ended ? counts.pass : output.passed,
      failed: broken + (loss === undefined ? 0 : 1),
      skipped: (counts.skip ?? 0) + (counts.todo ?? 0),
      failures: loss === undefined ? output.failures : [...output.failures, loss],
      skips: output.skips,
    };
  }
}

// Reads what `bun test` prints: the files that it ran, the tests that failed and were skipped, and
// the counts at the end.

const header = /^(\S+[._](?:test|spec)\.[cm]?[jt]sx?):$/;
const result = /^\((pass|fail|skip|todo)\) (.*?)(?: \[[\d.]+m?s\])?$/;
const crash = /^✗ (\S+) \(worker crashed: (.*)\)$/;
const outside = "# Unhandled error between tests";
const keptLines = 60;

/**
 * Reads what one `bun test` prints to stderr. A test's own output may look like a count; only the
 * last ones are believed.
 */
export class BunOutput {
  files = new Set();
  failures = [];
  skips = [];
  /** Tests that passed by their lines, for runs that end without counts. */
  passed = 0;
  counts = {};
  #file = "";
  /** What each file printed since its last result; files that run beside each other take turns. */
  #linesOf = new Map();
  #repeats = false;
  /** Lines with dashes that are still expected around an error outside of tests. */
  #dashes = 0;

  /** Whether the counts at the end were printed. */
  get ended() {
    return this.counts.pass !== undefined;
  }

  read(text) {
    const line = text.replaceAll(/\u001b\[[0-9;]*m/g, "");
    const count = /^\s*(\d+) (pass|fail|skip|todo|error)s?$/.exec(line);
    if (count) this.counts[count[2]] = Number(count[1]);
    // What follows repeats failures that stand above.
    if (/^\d+ tests? (?:failed|skipped|todo):$/.test(line)) this.#repeats = true;
    if (!this.#repeats) this.#readResult(line);
  }

  get #lines() {
    const lines = this.#linesOf.get(this.#file) ?? [];
    this.#linesOf.set(this.#file, lines);
    return lines;
  }

  #readResult(line) {
    const [, file] = header.exec(line) ?? [];
    if (file !== undefined) {
      this.files.add(file);
      this.#file = file;
      return;
    }
    const [, crashed, how] = crash.exec(line) ?? [];
    if (crashed !== undefined) {
      this.files.add(crashed);
      const lines = this.#linesOf.get(crashed) ?? [];
      return this.#fail(crashed, "", [`error: its process crashed: ${how}`, ...lines]);
    }
    if (/^\s+\^ this test timed out/.test(line)) {
      this.failures.at(-1)?.lines.push(line.replace("^", "error:").trim());
      return;
    }
    const [, kind, title] = result.exec(line) ?? [];
    if (kind !== undefined) return this.#end(kind, title, line);
    if (line === outside) {
      this.#dashes = 2;
      this.#linesOf.delete(this.#file);
      return;
    }
    this.#lines.push(line);
    if (this.#lines.length > keptLines) this.#lines.shift();
    if (this.#dashes > 0 && /^-{20,}$/.test(line)) {
      this.#dashes -= 1;
      if (this.#dashes === 0) this.#fail(this.#file, "", this.#lines);
    }
  }

  #end(kind, title, line) {
    if (kind === "fail") this.#fail(this.#file, title, this.#lines);
    else if (kind === "pass") this.passed += 1;
    else if (kind === "skip") this.skips.push(line);
    this.#linesOf.delete(this.#file);
  }

  #fail(file, title, lines) {
    this.failures.push({ file, title, lines: [...lines] });
    this.#linesOf.delete(file);
  }
}

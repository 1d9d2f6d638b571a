import { openSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** How a program is started. */
export interface ChildOptions {
  /** Names its error file and stands in messages. */
  name: string;
  command: readonly string[];
  environment?: Readonly<Record<string, string>>;
  /** Working directory; the bench's own when absent. */
  directory?: string;
  /** Cores that the program may run on, as `taskset -c` takes them; any when absent. */
  cores?: string | undefined;
}

/** A program that was started here. */
export interface Child {
  readonly name: string;
  readonly pid: number;
  /** Milliseconds of `performance.now()` at which it was started. */
  readonly startedAtMs: number;
  /** The next line on standard output; undefined when the program has ended. */
  nextLine(): Promise<string | undefined>;
  writeLine(line: string): void;
  /** False once the program has ended. */
  isRunning(): boolean;
  /** Last lines of its standard error, for a message. */
  errorText(): string;
  /** Ends it by its process id and waits until it is gone. */
  stop(): Promise<void>;
}

/** How long a program may take to end after SIGTERM before it is killed. */
const graceMs = 5_000;
const errorTail = 600;

/** Starts programs and knows which of them still run, so that none outlives the bench. */
export class Children {
  private readonly directory: string;
  private readonly running = new Set<Child>();
  private count = 0;
  private isClosed = false;

  /** Standard errors go to files in `directory`. */
  constructor(directory: string) {
    this.directory = directory;
  }

  spawn(options: ChildOptions): Child {
    if (this.isClosed) throw new Error("the bench is being ended");
    this.count += 1;
    const errorPath = join(this.directory, `${options.name}-${this.count}.err`);
    const pin = options.cores === undefined ? [] : ["taskset", "-c", options.cores];
    const startedAtMs = performance.now();
    const subprocess = Bun.spawn([...pin, ...options.command], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: openSync(errorPath, "w"),
      env: { ...inheritedEnvironment(), ...options.environment },
      ...(options.directory === undefined ? {} : { cwd: options.directory }),
    });
    const nextLine = lineQueue(subprocess.stdout);
    const child: Child = {
      name: options.name,
      pid: subprocess.pid,
      startedAtMs,
      nextLine,
      writeLine: (line) => {
        subprocess.stdin.write(`${line}\n`);
        subprocess.stdin.flush();
      },
      isRunning: () => subprocess.exitCode === null && subprocess.signalCode === null,
      errorText: () => readFileSync(errorPath, "utf8").trim().slice(-errorTail),
      stop: () => this.stop(child, subprocess),
    };
    this.running.add(child);
    return child;
  }

  /** Ends everything that still runs; nothing can be started any more. */
  async stopAll(): Promise<void> {
    this.isClosed = true;
    await Promise.all([...this.running].map((child) => child.stop()));
  }

  private async stop(child: Child, subprocess: Bun.Subprocess): Promise<void> {
    const timer = setTimeout(() => subprocess.kill("SIGKILL"), graceMs);
    subprocess.kill("SIGTERM");
    await subprocess.exited;
    clearTimeout(timer);
    this.running.delete(child);
  }
}

/** Ends the programs, and then this one, when it is asked to end. */
export function stopOnSignals(children: Children): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => void children.stopAll().finally(() => process.exit(130)));
}

/**
 * Only what programs need to run: no proxies or vendors' keys of the shell that would change what
 * is measured.
 */
function inheritedEnvironment(): Record<string, string> {
  const names = ["PATH", "HOME", "TMPDIR", "LANG", "USER"];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/**
 * Resolves with the first line that matches; rejects when the program ends before it, or the time
 * is over.
 */
export async function waitForLine(
  child: Child,
  { pattern, timeoutMs }: { pattern: RegExp; timeoutMs: number },
): Promise<RegExpExecArray> {
  const deadline = Bun.sleep(timeoutMs).then(() => "late" as const);
  for (;;) {
    const line = await Promise.race([child.nextLine(), deadline]);
    const words = child.errorText() || "nothing on standard error";
    if (line === "late")
      throw new Error(`${child.name} was not ready within ${timeoutMs} ms: ${words}`);
    if (line === undefined) throw new Error(`${child.name} ended: ${words}`);
    const match = pattern.exec(line);
    if (match !== null) return match;
  }
}

/**
 * Reads on whether or not someone asks, so that no program blocks on a full pipe; keeps the last
 * thousand lines.
 */
function lineQueue(stream: ReadableStream<Uint8Array>): () => Promise<string | undefined> {
  const lines: string[] = [];
  const waiting: ((line: string | undefined) => void)[] = [];
  let ended = false;
  const push = (line: string): void => {
    const waiter = waiting.shift();
    if (waiter !== undefined) waiter(line);
    else if (lines.push(line) > 1_000) lines.shift();
  };
  void (async () => {
    const decoder = new TextDecoder();
    let text = "";
    for await (const bytes of stream) {
      const parts = (text + decoder.decode(bytes, { stream: true })).split("\n");
      text = parts.pop() ?? "";
      parts.forEach(push);
    }
    ended = true;
    for (const waiter of waiting.splice(0)) waiter(undefined);
  })();
  return async () =>
    lines.shift() ?? (ended ? undefined : new Promise((resolve) => void waiting.push(resolve)));
}

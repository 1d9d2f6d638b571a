import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Subprocess } from "bun";
import { putMigratedSqlite } from "./migrated-sqlite.ts";
import { isBundled, programPath } from "./program.ts";
import { TextLog } from "./text-log.ts";

export interface ProcessOptions {
  /**
   * Variables of the gateway. Of the tests' own environment, only the search path for programs
   * reaches it.
   */
  environment?: Readonly<Record<string, string>>;
  /** Text of the switchyard.yaml in the gateway's working directory. */
  yaml?: string;
  /** The gateway's data directory; a fresh one when absent. */
  dataDirectory?: string;
  /** The command to run instead of the gateway's program. */
  command?: readonly string[];
  /** True where its memory is measured, which it then gives back as a user's gateway does. */
  isMemoryMeasured?: boolean;
}

/** A gateway that runs as its own process. */
export interface GatewayProcess {
  /** `http://127.0.0.1:PORT`, from the ready line. */
  url: string;
  port: number;
  child: Subprocess;
  dataDirectory: string;
  /** Milliseconds from the spawn to the ready line. */
  startMs: number;
  readonly stdoutLines: readonly string[];
  readonly stderrText: string;
  /**
   * Resolves when stderr contains a text, at once when it already does; rejects when the process
   * ends without it.
   */
  stderrHas(text: string): Promise<void>;
  /** Kills the process with SIGKILL, which to it is like a power cut. */
  kill9(): Promise<void>;
  /** Stops the process with SIGTERM and returns its exit code, once all that it wrote is read. */
  terminate(): Promise<number>;
}

/** A process that ended by itself. */
export interface EndedProcess {
  exitCode: number;
  stdout: string;
  stderr: string;
}

const readyLine = /^switchyard ready (https?:\/\/\S+)$/m;

const children = new Set<Subprocess>();
const directories = new Set<string>();
process.on("exit", () => killAll());

/** Creates a temporary directory, which `endProcesses` removes. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-process-"));
  directories.add(directory);
  return directory;
}

/**
 * Ends the started processes and removes their directories; for `afterAll` of every file that
 * starts processes.
 */
export async function endProcesses(): Promise<void> {
  killAll();
  await Promise.all([...children].map((child) => child.exited));
  children.clear();
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  directories.clear();
}

function killAll(): void {
  for (const child of children) child.kill("SIGKILL");
}

/**
 * Starts a gateway on a free port; resolves at the ready line, rejects with its stderr when it ends
 * before that.
 */
export async function startProcess(options: ProcessOptions = {}): Promise<GatewayProcess> {
  const startedMs = performance.now();
  const { child, stdout, stderr, dataDirectory } = spawn(await withDatabase(options));
  await stdout.matches(readyLine).catch(async () => {
    throw new Error(
      `the gateway ended with ${await child.exited} before it was ready:\n${stdout.text}${await stderr.complete}`,
    );
  });
  const url = readyLine.exec(stdout.text)?.[1] ?? "";
  return {
    url,
    port: Number(new URL(url).port),
    child,
    dataDirectory,
    startMs: performance.now() - startedMs,
    get stdoutLines() {
      return stdout.text.trimEnd().split("\n");
    },
    get stderrText() {
      return stderr.text;
    },
    stderrHas: (text) => stderr.has(text),
    async kill9() {
      child.kill("SIGKILL");
      await child.exited;
    },
    async terminate() {
      child.kill("SIGTERM");
      await Promise.all([stdout.complete, stderr.complete]);
      return child.exited;
    },
  };
}

/** What makes the gateway's database or its key another one than those of a first start. */
const otherDatabase = /^(?:DATABASE_URL|SWITCHYARD_(?:DATA_DIR|ENCRYPTION_KEY|SECRETS_KEY))/;

/**
 * In a whole run, gives a gateway the key and the empty database that its first start would make,
 * whose migrations take a fifth of that start. Tests of a first start name a directory themselves,
 * and get none.
 */
async function withDatabase(options: ProcessOptions): Promise<ProcessOptions> {
  const { environment = {}, yaml = "", dataDirectory, command } = options;
  const isOther = Object.keys(environment).some((name) => otherDatabase.test(name));
  if (!isBundled || isOther || command !== undefined || dataDirectory !== undefined) return options;
  if (/^(?:storage|secrets|security|data)\b/m.test(yaml)) return options;
  const directory = join(temporaryDirectory(), "data");
  mkdirSync(directory, { mode: 0o700 });
  await putMigratedSqlite(directory, "switchyard.db");
  chmodSync(join(directory, "switchyard.db"), 0o600);
  const key = `${randomBytes(32).toString("base64")}\n`;
  writeFileSync(join(directory, "encryption.key"), key, { mode: 0o600 });
  return { ...options, dataDirectory: directory };
}

/** Runs a gateway that is expected to end by itself. */
export async function runProcess(options: ProcessOptions = {}): Promise<EndedProcess> {
  const { child, stdout, stderr } = spawn(options);
  const [exitCode, out, err] = await Promise.all([child.exited, stdout.complete, stderr.complete]);
  return { exitCode, stdout: out, stderr: err };
}

/** Starts a gateway and sends it SIGTERM once its stderr contains a text. */
export async function terminateStarting(
  options: ProcessOptions,
  text: string,
): Promise<EndedProcess> {
  const { child, stdout, stderr } = spawn(options);
  await stderr.has(text);
  child.kill("SIGTERM");
  const [exitCode, out, err] = await Promise.all([child.exited, stdout.complete, stderr.complete]);
  return { exitCode, stdout: out, stderr: err };
}

/** Starts a gateway and kills it after this many milliseconds, ready or not. */
export async function killStarting(options: ProcessOptions, afterMs: number): Promise<void> {
  const { child } = spawn(options);
  await delay(afterMs);
  child.kill("SIGKILL");
  await child.exited;
}

/** Counts of runs after which the engine's second compiler takes code over; 1,000 by default. */
const laterCompilation = Object.fromEntries(
  ["AfterWarmUp", "AfterLongWarmUp", "Soon"].map((when) => [
    `BUN_JSC_thresholdForOptimize${when}`,
    "30000",
  ]),
);

/**
 * The engine's options of gateways in a whole run: most of them live for some seconds, and compiling
 * and collecting take a quarter of their start. Gateways of their sources have users' options.
 */
const engineOptions: Readonly<Record<string, string>> = {
  ...laterCompilation,
  // Runs after which the first compiler takes code over; 500 by default.
  BUN_JSC_thresholdForJITAfterWarmUp: "2000",
};

/** Options that take more memory, for gateways whose memory is not measured. */
const memoryOptions: Readonly<Record<string, string>> = {
  // Bytes between two collections at least; 8 MiB by default, of which a start needs three.
  BUN_JSC_largeHeapSize: String(64 * 1024 ** 2),
  // Free memory is kept, not given back and asked for again.
  MIMALLOC_PURGE_DELAY: "-1",
};

/** Where a program of the gateway runs: its folder, its data, and all of its variables. */
interface ProgramPlace {
  workingDirectory: string;
  dataDirectory: string;
  environment: Record<string, string | undefined>;
}

/** Makes a folder for a program, with the configuration of its options. */
export function makePlace({
  environment = {},
  yaml,
  dataDirectory,
  isMemoryMeasured = false,
}: Omit<ProcessOptions, "command">): ProgramPlace {
  const workingDirectory = temporaryDirectory();
  if (yaml !== undefined) writeFileSync(join(workingDirectory, "switchyard.yaml"), yaml);
  const data = dataDirectory ?? join(workingDirectory, "data");
  return {
    workingDirectory,
    dataDirectory: data,
    environment: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      BUN_CONFIG_MAX_HTTP_REQUESTS: "16384",
      PORT: "0",
      SWITCHYARD_DATA_DIR: data,
      ...(isBundled && engineOptions),
      ...(isBundled && !isMemoryMeasured && memoryOptions),
      ...environment,
    },
  };
}

function spawn({ command, ...options }: ProcessOptions) {
  const { workingDirectory, dataDirectory, environment } = makePlace(options);
  const child = Bun.spawn([...(command ?? [process.execPath, programPath("main")])], {
    cwd: workingDirectory,
    env: environment,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  children.add(child);
  void child.exited.then(() => children.delete(child));
  return {
    child,
    stdout: new TextLog(child.stdout),
    stderr: new TextLog(child.stderr),
    dataDirectory,
  };
}

import { dirname } from "node:path";
import type {
  ConversionReport,
  ConversionTask,
  PreparedPage,
  ConversionLimits,
} from "./converter-messages.ts";

/** The outcome of a conversion. */
export type Conversion =
  | { kind: "converted"; markdown: string; pages: number }
  /** At least one page is left to be read, as the task asked for. */
  | { kind: "prepared"; pages: PreparedPage[] }
  /** The file cannot be converted; `message` is for the caller. */
  | { kind: "refused"; message: string }
  /** The cause is uncertain, so another attempt may succeed; `message` is for the log. */
  | { kind: "failed"; reason: "crashed" | "timed_out" | "busy" | "abandoned"; message: string }
  /** The installation cannot convert such files; `message` is for the log. */
  | { kind: "unfit"; message: string };

/** The options of the pool. Times are in milliseconds. */
export interface ConverterPoolOptions {
  /** The path of the script that children run. */
  script: string;
  childrenMax: number;
  /** The most files that may wait for a child; further ones are refused. */
  waitingMax: number;
  /** The time without a report after which a child is ended. */
  silenceMs: number;
  /** The longest time for one file. */
  totalMs: number;
  /** The time for which an idle child is kept. */
  idleMs: number;
  /** Files after which a child is replaced, since it does not return memory. */
  filesPerChildMax: number;
  memoryKibMax: number;
}

interface Job {
  task: ConversionTask;
  signal: AbortSignal | undefined;
  settle(conversion: Conversion): void;
}

interface Child {
  process: ConverterProcess;
  filesDone: number;
  job: Job | undefined;
  /** Ends the child when it is silent for too long, or idle. */
  timer: ReturnType<typeof setTimeout> | undefined;
  totalTimer: ReturnType<typeof setTimeout> | undefined;
}

/**
 * Child processes that convert files, started when they are needed and ended when they are not.
 * However a child ends, the file's caller gets an answer and its place is free again.
 */
export class ConverterPool {
  private readonly children = new Set<Child>();
  private readonly waiting: Job[] = [];
  private closed = false;

  constructor(private readonly options: ConverterPoolOptions) {}

  /** The number of children, busy or idle. */
  get childCount(): number {
    return this.children.size;
  }

  /** Converts a file as soon as a child is free. The signal gives up a file that waits. */
  convert(task: ConversionTask, signal?: AbortSignal): Promise<Conversion> {
    return new Promise((settle) => {
      if (this.closed || this.waiting.length >= this.options.waitingMax) {
        settle({
          kind: "failed",
          reason: "busy",
          message: `${this.waiting.length} files are waiting already`,
        });
        return;
      }
      const job: Job = { task, signal, settle };
      this.waiting.push(job);
      signal?.addEventListener("abort", () => this.giveUp(job), { once: true });
      this.fill();
    });
  }

  /** Ends every child. Files in progress or waiting are answered as failed. */
  close(): void {
    this.closed = true;
    for (const job of this.waiting.splice(0))
      job.settle({ kind: "failed", reason: "abandoned", message: "the gateway ends" });
    for (const child of this.children)
      this.end(child, { kind: "failed", reason: "abandoned", message: "the gateway ends" });
  }

  private giveUp(job: Job): void {
    const place = this.waiting.indexOf(job);
    if (place < 0) return;
    this.waiting.splice(place, 1);
    job.settle({ kind: "failed", reason: "abandoned", message: "the client has left" });
  }

  private fill(): void {
    while (this.waiting.length > 0) {
      const child = this.freeChild();
      if (child === undefined) return;
      this.begin(child, this.waiting.shift() as Job);
    }
  }

  private freeChild(): Child | undefined {
    for (const child of this.children) if (child.job === undefined) return child;
    return this.children.size < this.options.childrenMax ? this.startChild() : undefined;
  }

  private startChild(): Child {
    const { script, memoryKibMax } = this.options;
    const child: Child = {
      process: new ConverterProcess({
        script,
        memoryKibMax,
        onReport: (report) => this.onReport(child, report),
        onExit: (reason) => this.end(child, { kind: "failed", reason: "crashed", message: reason }),
      }),
      filesDone: 0,
      job: undefined,
      timer: undefined,
      totalTimer: undefined,
    };
    this.children.add(child);
    return child;
  }

  private begin(child: Child, job: Job): void {
    child.job = job;
    child.totalTimer = this.endAfter(child, this.options.totalMs);
    this.watchSilence(child);
    try {
      child.process.start(job.task);
    } catch (error) {
      this.end(child, { kind: "failed", reason: "crashed", message: String(error) });
    }
  }

  private watchSilence(child: Child): void {
    clearTimeout(child.timer);
    child.timer = this.endAfter(child, this.options.silenceMs);
  }

  private endAfter(child: Child, ms: number): ReturnType<typeof setTimeout> {
    return setTimeout(
      () =>
        this.end(child, { kind: "failed", reason: "timed_out", message: `nothing for ${ms} ms` }),
      ms,
    );
  }

  private onReport(child: Child, report: ConversionReport): void {
    if (!this.children.has(child) || child.job === undefined) return;
    if (report.kind === "progress") {
      this.watchSilence(child);
      return;
    }
    if (report.kind === "failed") {
      this.end(child, { kind: "failed", reason: "crashed", message: report.message });
      return;
    }
    const worn = (child.filesDone += 1) >= this.options.filesPerChildMax;
    if (worn || report.kind === "unfit") this.end(child, report);
    else this.finish(child, report);
  }

  /** Answers a child's job; the child stays for the next one. */
  private finish(child: Child, conversion: Conversion): void {
    const { job } = child;
    clearTimeout(child.timer);
    clearTimeout(child.totalTimer);
    child.job = undefined;
    child.timer = setTimeout(() => this.end(child, conversion), this.options.idleMs);
    child.timer.unref();
    job?.settle(conversion);
    this.fill();
  }

  /** Ends a child, answers its job, and lets another child take what waits. */
  private end(child: Child, conversion: Conversion): void {
    if (!this.children.delete(child)) return;
    clearTimeout(child.timer);
    clearTimeout(child.totalTimer);
    child.process.kill();
    child.job?.settle(conversion);
    child.job = undefined;
    if (!this.closed) this.fill();
  }
}

/** Options of one child process. */
interface ConverterProcessOptions {
  /** The path of the script that it runs. */
  script: string;
  /** The most memory that it may take, in KiB; enforced where the system supports such limits. */
  memoryKibMax: number;
  onReport(report: ConversionReport): void;
  /** Called when it has ended, for any reason. */
  onExit(reason: string): void;
}

/** Processor seconds after which the system ends a child, as a last resort. */
const processorSecondsMax = 1_800;

/** One child process, which works on one file at a time. */
class ConverterProcess {
  private readonly child: Bun.Subprocess<"ignore", "ignore", "ignore">;

  constructor({ script, memoryKibMax, onReport, onExit }: ConverterProcessOptions) {
    const program = [process.execPath, script];
    // RLIMIT_DATA rather than RLIMIT_AS: the engine reserves far more address space than it uses.
    const limits = `ulimit -t ${processorSecondsMax}; ulimit -d ${memoryKibMax}; exec "$0" "$@"`;
    this.child = Bun.spawn(
      process.platform === "win32" ? program : ["/bin/sh", "-c", limits, ...program],
      {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore",
        // Nothing of the gateway's environment, so that a hijacked child finds no secrets.
        env: { BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0" },
        cwd: dirname(script),
        serialization: "advanced",
        ipc: (message: ConversionReport) => onReport(message),
        onExit: (_, exitCode, signal) =>
          onExit(
            signal === null ? `it ended with code ${exitCode}` : `it was ended by signal ${signal}`,
          ),
      },
    );
    // An idle child must not keep the gateway from ending.
    this.child.unref();
  }

  /** Passes a file to the child. Throws when the child has ended already. */
  start(task: ConversionTask): void {
    this.child.send(task);
  }

  /** Ends it at once; `onExit` follows. */
  kill(): void {
    this.child.kill("SIGKILL");
  }
}

/** The constant name by which answers identify the converter. */
export const converterModel = "switchyard/ocr-eng-1";

/**
 * Bounds of one file. An A3 page at 400 dpi has 31 million pixels, and recognising a page takes
 * about two seconds. Together with the times below they limit what one file can cost.
 */
export const limits: ConversionLimits = {
  pixelsMax: 50_000_000,
  pagesMax: 200,
  scannedPagesMax: 30,
  charactersMax: 4_000_000,
};

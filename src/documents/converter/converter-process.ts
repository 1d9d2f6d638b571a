import { dirname } from "node:path";
import type { ConversionReport, ConversionTask } from "./converter-messages.ts";

/** What one child process is started with. */
export interface ConverterProcessOptions {
  /** Path of the script that it runs. */
  script: string;
  /** Memory that it may take, in KiB; kept where the system knows such limits. */
  memoryKibMax: number;
  onReport(report: ConversionReport): void;
  /** It has ended, for whatever reason. */
  onExit(reason: string): void;
}

/** Seconds on a processor after which the system ends a child that nobody else could. */
const processorSecondsMax = 1_800;

/** One child process, which works on one file at a time. */
export class ConverterProcess {
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
        // Nothing of the gateway's environment: whoever takes a child over finds no secrets there.
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
    // An idle child keeps no gateway from ending.
    this.child.unref();
  }

  /** Hands a file over. Throws when the child is gone already. */
  start(task: ConversionTask): void {
    this.child.send(task);
  }

  /** Ends it at once; `onExit` follows. */
  kill(): void {
    this.child.kill("SIGKILL");
  }
}

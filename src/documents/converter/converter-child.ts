import { setPriority } from "node:os";
import {
  MissingPartError,
  type ConversionReport,
  type ConversionTask,
} from "./converter-messages.ts";
import { convert } from "./convert.ts";
import { Recognizer } from "./recognizer.ts";

/**
 * Entry point of a child process that converts untrusted files, so that a decoder that crashes,
 * hangs or is exploited takes nothing else with it. It receives one task at a time over the channel
 * to its parent, and ends with the channel.
 */
const recognizer = new Recognizer();

function report(message: ConversionReport): void {
  process.send?.(message);
}

async function work(task: ConversionTask): Promise<void> {
  try {
    report(await convert(task, { recognizer, onPage: () => report({ kind: "progress" }) }));
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    report({ kind: error instanceof MissingPartError ? "unfit" : "failed", message });
  }
}

// Chat has priority over scans; 5 of 19 niceness steps leave them a quarter of a busy processor.
setPriority(5);
process.on("message", (task: ConversionTask) => void work(task));
process.on("disconnect", () => process.exit(0));

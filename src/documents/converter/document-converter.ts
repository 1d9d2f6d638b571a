import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { Clock } from "../../platform/kernel/clock.ts";
import {
  fileFormatOf,
  type ConversionLimits,
  type ConversionTask,
  type FileFormat,
} from "./converter-messages.ts";
import { ConverterPool, type Conversion, type ConverterPoolOptions } from "./converter-pool.ts";

/** The constant name by which answers say what converted them. */
export const converterModel = "switchyard/ocr-eng-1";

/**
 * A page in A3 at 400 dots an inch has 31 million pixels; a page takes about two seconds to
 * recognize. Together with the times below they bound what one file can cost.
 */
const limits: ConversionLimits = {
  pixelsMax: 50_000_000,
  pagesMax: 200,
  scannedPagesMax: 30,
  charactersMax: 4_000_000,
};

const poolDefaults: Omit<ConverterPoolOptions, "script"> = {
  // Half of the processors: the other half is for requests for text.
  childrenMax: Math.min(4, Math.max(2, Math.floor(availableParallelism() / 2))),
  // Each holds a file of up to 5 MiB.
  waitingMax: 32,
  silenceMs: 30_000,
  totalMs: 120_000,
  idleMs: 60_000,
  filesPerChildMax: 50,
  // The engine reserves about 2.5 GB of this without using it; what is left for a file's pixels are
  // 1.4 GB.
  memoryKibMax: 4_000_000,
};

/** How a conversion ended, for metrics and logs. */
interface ObservedConversion {
  format: FileFormat;
  outcome: Conversion["kind"];
  durationMs: number;
  /** Why it did not succeed, where the file is not to blame; not for callers. */
  trouble: string | undefined;
}

/** How the converter is built. */
export interface DocumentConverterOptions {
  clock: Clock;
  onConverted(observed: ObservedConversion): void;
  /** Changes for tests. */
  pool?: Partial<ConverterPoolOptions>;
}

/**
 * Reads the text of pictures and PDFs as Markdown, in child processes that are started when they
 * are first needed.
 */
export class DocumentConverter {
  private readonly options: DocumentConverterOptions;
  private readonly pool: ConverterPool;

  constructor(options: DocumentConverterOptions) {
    this.options = options;
    const script = fileURLToPath(new URL("./converter-child.ts", import.meta.url));
    this.pool = new ConverterPool({ script, ...poolDefaults, ...options.pool });
  }

  /** Child processes that run, busy or idle. */
  get childCount(): number {
    return this.pool.childCount;
  }

  /**
   * Converts a file by what its bytes are; `signal` gives it up while it waits. With
   * `leavesPictures` the pages that have no text of their own are only drawn, for a provider to
   * read.
   */
  async convert(
    bytes: Uint8Array,
    signal: AbortSignal,
    { leavesPictures = false } = {},
  ): Promise<Conversion> {
    const format = fileFormatOf(bytes);
    if (format === undefined)
      return { kind: "refused", message: "The file is no PNG, JPEG, GIF, WebP, BMP, TIFF or PDF." };
    const { clock, onConverted } = this.options;
    const startedMs = clock.monotonicMs();
    const task: ConversionTask = {
      format,
      bytes,
      limits,
      ...(leavesPictures && { leavesPictures }),
    };
    const conversion = await this.pool.convert(task, signal);
    const trouble =
      conversion.kind === "failed" || conversion.kind === "unfit" ? conversion.message : undefined;
    onConverted({
      format,
      outcome: conversion.kind,
      durationMs: clock.monotonicMs() - startedMs,
      trouble,
    });
    return conversion;
  }

  /** Ends every child. */
  close(): void {
    this.pool.close();
  }
}

import {
  fileFormatOf,
  isArchive,
  type ConversionTask,
  type FileFormat,
} from "./converter-messages.ts";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { Clock } from "../../platform/kernel/clock.ts";
import {
  type Conversion,
  type ConverterPoolOptions,
  ConverterPool,
  limits,
} from "./converter-pool.ts";

const poolDefaults: Omit<ConverterPoolOptions, "script"> = {
  // Half of the processors; the other half is for inference requests.
  childrenMax: Math.min(4, Math.max(2, Math.floor(availableParallelism() / 2))),
  // Each holds a file of up to 5 MiB.
  waitingMax: 32,
  silenceMs: 30_000,
  totalMs: 120_000,
  idleMs: 60_000,
  filesPerChildMax: 50,
  // The engine reserves about 2.5 GB of this without using it; 1.4 GB are left for a file's pixels.
  memoryKibMax: 4_000_000,
};

/** The outcome of a conversion, for metrics and logs. */
interface ObservedConversion {
  format: FileFormat | "office";
  outcome: Conversion["kind"];
  durationMs: number;
  /** The reason why it did not succeed, where the file is not at fault; not for callers. */
  trouble: string | undefined;
}

/** Options of the converter. */
interface DocumentConverterOptions {
  clock: Clock;
  onConverted(observed: ObservedConversion): void;
  /** Overrides for tests. */
  pool?: Partial<ConverterPoolOptions>;
}

/** Converts pictures and PDFs to Markdown, in child processes that are started on first use. */
export class DocumentConverter {
  private readonly pool: ConverterPool;

  constructor(private readonly options: DocumentConverterOptions) {
    const script = fileURLToPath(new URL("./converter-child.ts", import.meta.url));
    this.pool = new ConverterPool({ script, ...poolDefaults, ...options.pool });
  }

  /** The number of child processes, busy or idle. */
  get childCount(): number {
    return this.pool.childCount;
  }

  /**
   * Converts a file by the format of its bytes; `signal` gives it up while it waits. With
   * `leavesPictures`, pages that have no text of their own are only drawn, for a provider to read.
   * `takesOffice` takes Word documents, Excel workbooks and PowerPoint presentations too.
   */
  async convert(
    bytes: Uint8Array,
    signal: AbortSignal,
    { leavesPictures = false, takesOffice = false } = {},
  ): Promise<Conversion> {
    const format = takesOffice && isArchive(bytes) ? "office" : fileFormatOf(bytes);
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

import { styleText } from "node:util";
import type { Environment } from "../platform/config/environment-settings.ts";

/**
 * Thrown where a command could not do what was asked; its message says how to fix it. Exit code 1,
 * or 2 for incorrect usage.
 */
export class CommandError extends Error {
  override name = "CommandError";

  constructor(
    message: string,
    readonly exitCode: 1 | 2 = 1,
  ) {
    super(message);
  }
}

/** A column of a table: its heading, and the text of a row. */
export type Column<Row> = readonly [heading: string, text: (row: Row) => string];

/** The output of a command: text for people, or one JSON document with `--json`. */
export class Terminal {
  readonly json: boolean;
  private readonly hasColours: boolean;
  private readonly write: { out(text: string): void; err(text: string): void };

  constructor(options: {
    json: boolean;
    hasColours: boolean;
    out(text: string): void;
    err(text: string): void;
  }) {
    this.json = options.json;
    this.hasColours = options.hasColours;
    this.write = options;
  }

  /** Writes text as it is, such as a piece of a streamed answer. */
  piece(text: string): void {
    this.write.out(text);
  }

  /** Writes a line for people; nothing with `--json`. */
  line(text = ""): void {
    if (!this.json) this.write.out(`${text}\n`);
  }

  /** Writes a line to stderr, beside the result, such as progress. */
  note(text: string): void {
    this.write.err(`${text}\n`);
  }

  /** Writes the result as JSON where that was requested; returns whether it did. */
  result(value: unknown): boolean {
    if (this.json) this.write.out(`${JSON.stringify(value, null, 2)}\n`);
    return this.json;
  }

  /** Writes rows below their headings, each column as wide as its widest text. */
  table<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): void {
    const cells = [
      columns.map(([heading]) => heading),
      ...rows.map((row) => columns.map(([, text]) => text(row))),
    ];
    const widths = columns.map((_, column) =>
      Math.max(...cells.map((row) => row[column]?.length ?? 0)),
    );
    for (const [index, row] of cells.entries()) {
      const text = row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd();
      this.line(index === 0 ? this.colour("dim", text) : text);
    }
  }

  /** Colours a text where the terminal supports colours. */
  colour(style: Parameters<typeof styleText>[0], text: string): string {
    return this.hasColours ? styleText(style, text, { validateStream: false }) : text;
  }
}

/** The dependencies of every command. */
export interface CommandContext {
  terminal: Terminal;
  environment: Environment;
  workingDirectory: string;
  /** The gateway's address, where the command line names one. */
  url: string | undefined;
  /** The key, where the command line names one. */
  key: string | undefined;
}

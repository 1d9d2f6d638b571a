import type { FileFormat } from "./file-format.ts";

/** Bounds on what a file may ask for, so that a small file cannot unfold into a large one. */
export interface ConversionLimits {
  /** Pixels of one picture. */
  pixelsMax: number;
  /** Pages of a document whose text is in it. */
  pagesMax: number;
  /** Pages that have to be read as pictures; each takes seconds. */
  scannedPagesMax: number;
  /** Characters of the Markdown. */
  charactersMax: number;
}

/** What a converter's child process is told. */
export interface ConversionTask {
  format: FileFormat;
  bytes: Uint8Array;
  limits: ConversionLimits;
  /** Pages without text of their own come back as pictures, for somebody else to read. */
  leavesPictures?: true;
}

/** A page as somebody else is to read it: its own text as Markdown, or a JPEG of it. */
export type PreparedPage = { markdown: string } | { jpeg: Uint8Array };

/** What a child process tells of its task; all but `progress` end it. */
export type ConversionReport =
  /** A page is done: the child is alive. */
  | { kind: "progress" }
  | { kind: "converted"; markdown: string; pages: number }
  /** At least one page is left to be read; only where the task asks for that. */
  | { kind: "prepared"; pages: PreparedPage[] }
  /** The file is damaged, encrypted or beyond the limits; `message` is for the caller. */
  | { kind: "refused"; message: string }
  /** The converter broke on the file; `message` is for the log. */
  | { kind: "failed"; message: string }
  /** This installation lacks what it takes to convert such files; `message` is for the log. */
  | { kind: "unfit"; message: string };

import { hourMs } from "../../../platform/kernel/clock.ts";
import type { RequestFile } from "../../dialects/file-parts.ts";
import { ProviderCallError } from "../batches/provider-api.ts";

/** A file that is to be uploaded. */
interface FileUpload {
  file: RequestFile;
  content: Uint8Array;
  /** 24 hexadecimal digits, by which it is found again where the answer was not received. */
  marker: string;
  /** For how long the provider may store it, in milliseconds. */
  livesMs: number;
}

/** The API of a vendor for files. */
export interface ProviderFileApi {
  /** The most bytes of files that its requests take inline. */
  inlineBytesMax: number;
  /** The longest and the shortest time for which it stores a file, in milliseconds. */
  lives: { mostMs: number; leastMs: number };
  /** Headers that requests with its ids have to carry, beside those that they have. */
  headers: Readonly<Record<string, string>>;
  /**
   * Uploads a file and returns what requests name it by. Rejects with `ProviderCallError` where it
   * is refused, or cannot be used at once.
   */
  upload(upload: FileUpload): Promise<string>;
  /** Finds a file by its marker; undefined where it was not stored. */
  find(marker: string): Promise<string | undefined>;
  /** Deletes a file by what requests name it by; one that is gone is no error. */
  remove(upstreamId: string): Promise<void>;
}

/** The shortest time for which vendors store files. */
export const vendorLeastMs = hourMs;

/** Separates the parts of a form; a random part keeps it out of every content. */
const newBoundary = (): string => `switchyard-${crypto.randomUUID()}`;

/** Returns the body and the content type of a form with a file behind its fields. */
export function formOf(
  fields: Readonly<Record<string, string>>,
  { name, type, content }: { name: string; type: string; content: Uint8Array },
): { body: (string | Uint8Array)[]; headers: Record<string, string> } {
  const boundary = newBoundary();
  const written = Object.entries(fields).map(
    ([field, value]) =>
      `--${boundary}\r\ncontent-disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`,
  );
  const head = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: ${type}\r\n\r\n`;
  return {
    body: [written.join("") + head, content, `\r\n--${boundary}--\r\n`],
    headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
  };
}

/**
 * Returns a file's name with the marker before its ending: models see the name, and the file is
 * found again by it. Characters that vendors refuse in names are replaced.
 */
export function markedName(filename: string, marker: string): string {
  const clean = filename.replace(/[<>:"|?*\\/\p{Cc}]/gu, "_");
  const [, stem = "file", ending = ""] = /^(.+?)(\.[A-Za-z0-9]{1,10})?$/u.exec(clean) ?? [];
  return `${stem.slice(0, 150)}-${marker}${ending}`;
}

/** Returns the media type of a file without its parameters. */
export const mediaTypeOf = ({ mimeType }: RequestFile): string =>
  mimeType.split(";")[0] ?? mimeType;

/** Returns the id in an answer. Throws `ProviderCallError` for an answer that has none. */
export function uploadedId(value: unknown, pattern: RegExp): string {
  if (typeof value === "string" && pattern.test(value)) return value;
  throw new ProviderCallError(424, "The address answers as no API for files does.");
}

/** Returns the id of the file in a list whose name has a marker. */
export function idByName(list: unknown, marker: string): string | undefined {
  const found = (Array.isArray(list) ? list : []).find((each: unknown) =>
    String((Object(each) as { filename?: unknown }).filename).includes(marker),
  ) as { id?: unknown } | undefined;
  return typeof found?.id === "string" ? found.id : undefined;
}

/** Ignores that a file is gone already: Google answers 403 for files that it does not know. */
export function ignoreGone(error: unknown): void {
  if (!(error instanceof ProviderCallError && [403, 404, 410].includes(error.status))) throw error;
}

import { badField, GatewayError } from "../../platform/kernel/errors.ts";

/** The most bytes of a part's headers, and the most parts of a form. */
const headerBytesMax = 16 * 1024;
const partsMax = 1_000;

/** A part of a form. Its content has to be read before the next part, or is skipped. */
export interface FormPart {
  name: string;
  /** Undefined for a plain field. */
  filename: string | undefined;
  /** The content type, as its sender wrote it. */
  type: string | undefined;
  content: AsyncIterable<Uint8Array>;
}

const malformed = (reason: string): GatewayError =>
  new GatewayError(
    "bad_request",
    `The body is not a valid form: ${reason}. Send multipart/form-data.`,
  );

/** Returns the boundary that a content type names (RFC 7578, 4.1). Throws `bad_request`. */
export function boundaryOf(contentType: string | null): string {
  const [, quoted, plain] =
    /^multipart\/form-data\b.*;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(
      contentType ?? "",
    ) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw malformed("the header content-type names no boundary");
  return boundary;
}

/**
 * Reads the parts of a form as its bytes come (RFC 7578, RFC 2046 section 5.1), without holding a
 * part in memory or copying its content: a piece of content is valid until the next one is asked
 * for. Throws `bad_request` for a malformed form, and the error of `pieces`.
 */
export async function* formParts(
  pieces: AsyncIterable<Uint8Array>,
  boundary: string,
): AsyncGenerator<FormPart> {
  const reader = new FormReader(pieces, boundary);
  try {
    await reader.skipContent();
    for (let count = 0; await reader.hasPart(); count += 1) {
      if (count === partsMax) throw malformed(`it has more than ${partsMax} parts`);
      const part = partOf(await reader.headers());
      yield { ...part, content: reader.content() };
      await reader.skipContent();
    }
  } finally {
    await reader.end();
  }
}

/** Returns a plain field's text. Throws `bad_request` where it is longer than `bytesMax`. */
export async function fieldText(
  { name, content }: FormPart,
  { bytesMax = 64 * 1024 } = {},
): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.byteLength;
    if (bytes > bytesMax) throw badField(name, `is longer than ${bytesMax} bytes.`);
    pieces.push(Uint8Array.from(piece));
  }
  return Buffer.concat(pieces).toString("utf8");
}

const lineEnd = Buffer.from("\r\n");
const nothing = Buffer.alloc(0);

/** Bytes of a piece that are joined to what was kept of the one before: more than a delimiter. */
const joinedBytes = 4 * 1024;

/** Reads a form: the content up to a delimiter, then headers, then content again. */
class FormReader {
  private readonly source: AsyncIterator<Uint8Array>;
  private readonly delimiter: Buffer;
  /** Bytes that have come and were not read. The form counts as if a line end preceded it. */
  private waiting: Buffer = lineEnd;
  /** The piece that came last, and how many of its bytes are within `waiting` or were read. */
  private piece: Buffer = nothing;
  private pieceAt = 0;
  private isInContent = true;
  private isOver = false;

  constructor(pieces: AsyncIterable<Uint8Array>, boundary: string) {
    this.source = pieces[Symbol.asyncIterator]();
    this.delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  /** Returns whether a part follows. Reads what comes after the last one, so that it is not left. */
  async hasPart(): Promise<boolean> {
    if (!this.isOver) return true;
    while (await this.fill()) this.waiting = nothing;
    return false;
  }

  /** Reads the headers of a part, in lower case. */
  async headers(): Promise<Map<string, string>> {
    for (;;) {
      const end = this.waiting.indexOf("\r\n\r\n");
      if (end > headerBytesMax || (end < 0 && this.waiting.byteLength > headerBytesMax))
        throw malformed("the headers of a part are too long");
      if (end >= 0) {
        const text = this.waiting.toString("utf8", 0, end);
        this.waiting = this.waiting.subarray(end + 4);
        this.isInContent = true;
        return headersOf(text);
      }
      if (!(await this.fill())) throw malformed("it ends within the headers of a part");
    }
  }

  /** Reads the rest of the content up to the next delimiter. */
  async *content(): AsyncGenerator<Uint8Array> {
    while (this.isInContent) {
      const piece = await this.nextContent();
      if (piece.byteLength > 0) yield piece;
    }
  }

  /** Ends the reading of `pieces`, so that what they hold is released. */
  async end(): Promise<void> {
    await this.source.return?.();
  }

  async skipContent(): Promise<void> {
    while (this.isInContent) await this.nextContent();
  }

  private async nextContent(): Promise<Uint8Array> {
    let from = 0;
    for (;;) {
      const at = this.waiting.indexOf(this.delimiter, from);
      if (at < 0) return this.contentBeforeTail();
      const after = await this.lineAfter(at + this.delimiter.byteLength);
      if (after === undefined) {
        // The same bytes within the content, which no line end follows.
        from = at + 1;
        continue;
      }
      const content = this.waiting.subarray(0, at);
      this.waiting = this.waiting.subarray(after);
      this.isInContent = false;
      return content;
    }
  }

  /** Returns what cannot be the beginning of a delimiter, once more has come. */
  private async contentBeforeTail(): Promise<Uint8Array> {
    const end = Math.max(0, this.waiting.byteLength - this.delimiter.byteLength);
    const content = this.waiting.subarray(0, end);
    this.waiting = this.waiting.subarray(end);
    if (content.byteLength === 0 && !(await this.fill()))
      throw malformed("it ends before its closing boundary");
    return content;
  }

  /**
   * Returns where the line of a delimiter ends; undefined where it is no delimiter. Notes whether
   * it is the last one.
   */
  private async lineAfter(start: number): Promise<number | undefined> {
    for (;;) {
      const line = this.waiting.subarray(start, start + 128);
      if (line.byteLength >= 2 && line[0] === 0x2d && line[1] === 0x2d) {
        this.isOver = true;
        return start + 2;
      }
      let at = 0;
      while (line[at] === 0x20 || line[at] === 0x09) at += 1;
      if (at + 1 < line.byteLength)
        return line[at] === 0x0d && line[at + 1] === 0x0a ? start + at + 2 : undefined;
      if (line.byteLength === 128) return undefined;
      if (!(await this.fill())) throw malformed("it ends before its closing boundary");
    }
  }

  /**
   * Adds bytes to what waits. Only the beginning of a piece is joined to what was kept of the one
   * before; as soon as all that waits lies within the piece, it is read where it is.
   */
  private async fill(): Promise<boolean> {
    while (this.pieceAt === this.piece.byteLength) {
      // The source may free a piece when the next one is asked for.
      this.waiting = Buffer.from(this.waiting);
      const { done, value } = await this.source.next();
      if (done) return false;
      this.piece = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      this.pieceAt = 0;
    }
    const keptBytes = this.waiting.byteLength;
    if (keptBytes <= this.pieceAt) {
      this.waiting = this.piece.subarray(this.pieceAt - keptBytes);
      this.pieceAt = this.piece.byteLength;
    } else {
      const joined = this.piece.subarray(this.pieceAt, this.pieceAt + joinedBytes);
      this.waiting = Buffer.concat([this.waiting, joined]);
      this.pieceAt += joined.byteLength;
    }
    return true;
  }
}

function headersOf(text: string): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of text.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0)
      headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  return headers;
}

/** Returns the name, the file name and the type of a part. */
function partOf(headers: ReadonlyMap<string, string>): Omit<FormPart, "content"> {
  const disposition = headers.get("content-disposition") ?? "";
  if (!/^form-data\b/i.test(disposition))
    throw malformed("a part has no content-disposition of a form");
  const name = parameterOf(disposition, "name");
  if (name === undefined) throw malformed("a part has no name");
  const filename = extendedParameterOf(disposition) ?? parameterOf(disposition, "filename");
  return { name, filename, type: headers.get("content-type") };
}

/**
 * Returns a parameter of a content-disposition. Browsers write quotes and line ends in names as
 * percent escapes (WHATWG, "multipart/form-data encoding algorithm"), other clients with a
 * backslash.
 */
function parameterOf(disposition: string, name: string): string | undefined {
  const [, quoted, plain] =
    new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))`, "i").exec(disposition) ?? [];
  return (
    quoted
      ?.replace(/\\(["\\])/g, "$1")
      .replace(/%22/g, '"')
      .replace(/%0D/gi, "\r")
      .replace(/%0A/gi, "\n") ?? plain
  );
}

/** Returns `filename*` (RFC 5987), which some clients send for names beyond ASCII. */
function extendedParameterOf(disposition: string): string | undefined {
  const [, encoded] = /;\s*filename\*=utf-8'[^']*'([^\s;]+)/i.exec(disposition) ?? [];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw malformed("the file name of a part is not valid percent encoding");
  }
}

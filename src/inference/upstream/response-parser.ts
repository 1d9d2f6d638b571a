import { UpstreamFailure } from "./upstream-failure.ts";
import { createBrotliDecompress, createGunzip, createInflate, type Gunzip } from "node:zlib";
import type { Transform } from "node:stream";

/**
 * Bytes that are pulled: undefined at the end, a rejection where they were cut. Bytes that have
 * arrived come without a promise, since streams pull once for each event.
 */
interface ByteSource {
  next(): Promise<Uint8Array | undefined> | Uint8Array | undefined;
  /** Reads all of it as text (UTF-8). */
  readText(limitBytes: number): Promise<string>;
}

/**
 * Bounds on the decoded size of an answer: this many bytes in any case, and beyond them this many
 * for each encoded byte. Repeated bytes expand a thousandfold, streams of events about twentyfold.
 */
const decodedBytesFree = 8 * 1024 * 1024;
const decodedBytesPerByte = 100;

const decoders: Record<string, () => Transform | Gunzip> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/**
 * Decodes a body whose sender compressed it although identity was asked for (RFC 9110, 8.4). The
 * encoded body is pulled only as the decoded one is read, so its reader bounds a decompression
 * bomb.
 */
function decodedBody(source: ByteSource, encoding: string): ByteSource {
  const create = decoders[encoding.trim().toLowerCase()];
  if (create === undefined) {
    throw new UpstreamFailure(
      "malformed_response",
      `content-encoding ${encoding} is not understood`,
      { sent: true },
    );
  }
  const iterator = encodedChunks(source, create())[Symbol.asyncIterator]();
  const next = async (): Promise<Uint8Array | undefined> => {
    const step = await iterator.next();
    return step.done ? undefined : step.value;
  };
  return { next, readText: (limitBytes) => collectText(next, limitBytes) };
}

async function* encodedChunks(source: ByteSource, decoder: Transform): AsyncGenerator<Uint8Array> {
  let encodedBytes = 0;
  let decodedBytes = 0;
  const feed = async (): Promise<void> => {
    for (let chunk = await source.next(); chunk !== undefined; chunk = await source.next()) {
      encodedBytes += chunk.byteLength;
      if (!decoder.write(chunk)) await new Promise((resolve) => decoder.once("drain", resolve));
    }
    decoder.end();
  };
  const feeding = feed().catch((error: unknown) =>
    decoder.destroy(error instanceof Error ? error : undefined),
  );
  try {
    for await (const chunk of decoder as AsyncIterable<Uint8Array>) {
      decodedBytes += chunk.byteLength;
      if (decodedBytes > Math.max(decodedBytesFree, decodedBytesPerByte * encodedBytes))
        throw unfoldsTooFar();
      yield chunk;
    }
    await feeding;
  } catch (error) {
    if (error instanceof UpstreamFailure) throw error;
    throw new UpstreamFailure("malformed_response", "the compressed answer could not be decoded", {
      sent: true,
      cause: error,
    });
  }
}

const unfoldsTooFar = (): UpstreamFailure =>
  new UpstreamFailure(
    "response_too_large",
    `the compressed answer unfolds to more than ${decodedBytesFree} bytes and ${decodedBytesPerByte} times its size`,
    { sent: true },
  );

async function collectText(
  next: () => Promise<Uint8Array | undefined>,
  limitBytes: number,
): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for (let chunk = await next(); chunk !== undefined; chunk = await next()) {
    size += chunk.byteLength;
    if (size > limitBytes) {
      throw new UpstreamFailure(
        "response_too_large",
        `the answer is larger than ${limitBytes} bytes`,
        { sent: true },
      );
    }
    parts.push(chunk);
  }
  return Buffer.concat(parts).toString("utf8");
}

/**
 * Returns an answer with its body decoded. An unknown coding ends the exchange and rejects with an
 * `UpstreamFailure`.
 */
export async function decodedResponse(
  response: UpstreamResponse,
  encoding: string,
): Promise<UpstreamResponse> {
  try {
    const body = decodedBody(response, encoding);
    return {
      status: response.status,
      headers: response.headers,
      next: () => body.next(),
      readText: (limitBytes) => body.readText(limitBytes),
      expectMore: () => response.expectMore(),
      expectEnd: () => response.expectEnd(),
      abort: () => response.abort(),
    };
  } catch (error) {
    response.abort();
    throw error;
  }
}

/** The status and headers of an upstream's answer. Header names are lower case. */
export interface ResponseHead {
  status: number;
  headers: Readonly<Record<string, string>>;
}

/** Receives what the parser finds, in order: one head, body bytes, one end. */
interface ResponseSink {
  onHead(head: ResponseHead): void;
  /**
   * Receives body bytes, from `start` to `end` of a buffer that is not written to again. No view of
   * them is created here.
   */
  onBody(bytes: Buffer, start: number, end: number): void;
  /**
   * Called when the response is complete. `reusable` says whether the connection may carry another
   * request.
   */
  onEnd(reusable: boolean): void;
}

type State =
  | "head"
  | "length"
  | "chunk-size"
  | "chunk-data"
  | "chunk-end"
  | "trailer"
  | "until-close"
  | "done";

/**
 * Bounds on one answer, in bytes: its head, its trailer, and all interim answers before it
 * together.
 */
const maxHeadBytes = 64 * 1024;
const maxTrailerBytes = 64 * 1024;
const maxInterimBytes = 64 * 1024;
const headEnd = Buffer.from("\r\n\r\n");

/** Returns the value of a hexadecimal digit; -1 for any other byte. */
function hexDigit(code: number | undefined): number {
  if (code === undefined) return -1;
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/**
 * Splits a head into status and headers. Repeated headers are joined with a comma (RFC 9110, 5.3).
 */
export function parseHead(text: string): ResponseHead {
  const lineEnd = text.indexOf("\r\n");
  const statusLine = lineEnd < 0 ? text : text.slice(0, lineEnd);
  const status = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(statusLine)?.[1];
  if (status === undefined)
    throw malformed(`not an HTTP/1.1 status line: ${JSON.stringify(statusLine.slice(0, 80))}`);
  const headers: Record<string, string> = {};
  let position = lineEnd < 0 ? text.length : lineEnd + 2;
  while (position < text.length) {
    let end = text.indexOf("\r\n", position);
    if (end < 0) end = text.length;
    const colon = text.indexOf(":", position);
    if (colon < 0 || colon > end) throw malformed("a header line without a colon");
    const name = text.slice(position, colon).toLowerCase();
    const value = text.slice(colon + 1, end).trim();
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
    position = end + 2;
  }
  return { status: Number(status), headers };
}

/** Where the minor version of `HTTP/1.1` begins in a head. */
const minorVersionAt = 7;

/**
 * Returns whether a connection may carry a further request (RFC 9112, 9.3): a server of HTTP/1.0
 * closes it unless it says otherwise.
 */
function isPersistent(connection: string | undefined, minorVersion: number | undefined): boolean {
  if (connection === undefined) return minorVersion !== 0x30;
  if (/\bclose\b/i.test(connection)) return false;
  return minorVersion !== 0x30 || /\bkeep-alive\b/i.test(connection);
}

const malformed = (message: string): UpstreamFailure =>
  new UpstreamFailure("malformed_response", message, { sent: true });

/**
 * An incremental HTTP/1.1 response parser (RFC 9112, 6 and 7): bodies with a content length,
 * chunked or until close; interim 1xx answers are skipped, up to a bound. One parser serves one
 * connection, response after response.
 */
export class ResponseParser {
  private state: State = "head";
  private pending: Buffer | undefined;
  private remaining = 0;
  private interimBytes = 0;
  private trailerBytes = 0;
  private keepAlive = true;
  private complete = false;

  constructor(private readonly sink: ResponseSink) {}

  /** Whether it is between responses, with nothing read of the next one. */
  get idle(): boolean {
    return this.state === "head" && this.pending === undefined;
  }

  push(chunk: Buffer): void {
    const bytes = this.pending === undefined ? chunk : Buffer.concat([this.pending, chunk]);
    this.pending = undefined;
    let position = 0;
    while (position < bytes.length) {
      const next = this.step(bytes, position);
      if (next < 0) {
        this.pending = position === 0 ? bytes : bytes.subarray(position);
        return;
      }
      position = next;
      if (this.complete) return this.tellEnd(position === bytes.length);
    }
  }

  /** Notes that the peer closed its side. Returns whether that completed the response. */
  end(): boolean {
    if (this.state !== "until-close") return false;
    this.finish(false);
    this.tellEnd(true);
    return true;
  }

  /** Consumes bytes from a position on and returns where it stopped; -1 asks for more bytes. */
  private step(bytes: Buffer, from: number): number {
    switch (this.state) {
      case "head":
        return this.readHead(bytes, from);
      case "length":
        return this.readCounted(bytes, from);
      case "chunk-size":
        return this.readChunkSize(bytes, from);
      case "chunk-data":
        return this.readCounted(bytes, from);
      case "chunk-end":
        return this.readChunkEnd(bytes, from);
      case "trailer":
        return this.readTrailer(bytes, from);
      case "until-close":
        this.sink.onBody(bytes, from, bytes.length);
        return bytes.length;
      case "done":
        throw malformed("bytes after the end of the response");
    }
  }

  private readHead(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(headEnd, from);
    if (end < 0) {
      if (bytes.length - from > maxHeadBytes) throw malformed("the response head is too long");
      return -1;
    }
    const head = parseHead(bytes.toString("latin1", from, end));
    if (head.status < 200) {
      this.skipInterim(head, end + 4 - from);
      return end + 4;
    }
    this.interimBytes = 0;
    this.keepAlive = isPersistent(head.headers["connection"], bytes[from + minorVersionAt]);
    this.chooseBody(head);
    this.sink.onHead(head);
    if (this.state === "length" && this.remaining === 0) this.finish(this.keepAlive);
    return end + 4;
  }

  private skipInterim({ status }: ResponseHead, lengthBytes: number): void {
    if (status < 100 || status === 101)
      throw malformed(`status ${status}, which was not asked for`);
    this.interimBytes += lengthBytes;
    if (this.interimBytes > maxInterimBytes) throw malformed("too many interim answers");
  }

  private chooseBody({ status, headers }: ResponseHead): void {
    const transferEncoding = headers["transfer-encoding"];
    if (status === 204 || status === 304) this.expectLength(0);
    else if (transferEncoding !== undefined) {
      if (!/\bchunked$/i.test(transferEncoding))
        throw malformed(`transfer-encoding ${transferEncoding}`);
      this.state = "chunk-size";
    } else if (headers["content-length"] !== undefined) {
      const length = headers["content-length"];
      if (!/^\d{1,15}$/.test(length)) throw malformed(`content-length ${length}`);
      this.expectLength(Number(length));
    } else this.state = "until-close";
  }

  private expectLength(length: number): void {
    this.remaining = length;
    this.state = "length";
  }

  private readCounted(bytes: Buffer, from: number): number {
    const end = Math.min(bytes.length, from + this.remaining);
    this.remaining -= end - from;
    this.sink.onBody(bytes, from, end);
    if (this.remaining === 0) {
      if (this.state === "length") this.finish(this.keepAlive);
      else this.state = "chunk-end";
    }
    return end;
  }

  private readChunkSize(bytes: Buffer, from: number): number {
    let size = 0;
    let at = from;
    for (let digit = hexDigit(bytes[at]); digit >= 0; digit = hexDigit(bytes[at])) {
      size = size * 16 + digit;
      at += 1;
    }
    const isPlain = bytes[at] === 13 && bytes[at + 1] === 10;
    const end = isPlain ? at + 1 : bytes.indexOf(10, at);
    if (end < 0) {
      if (bytes.length - from > 1024) throw malformed("the chunk size line is too long");
      return -1;
    }
    const isSize =
      at > from &&
      at - from <= 12 &&
      (isPlain || /^[ \t]*(?:;.*)?\r?$/.test(bytes.toString("latin1", at, end)));
    if (!isSize) throw malformed("a chunk size that is not hexadecimal");
    this.remaining = size;
    this.state = size === 0 ? "trailer" : "chunk-data";
    return end + 1;
  }

  private readChunkEnd(bytes: Buffer, from: number): number {
    if (bytes[from] === 13 && bytes.length - from < 2) return -1;
    const lineEnd = bytes[from] === 13 ? from + 1 : from;
    if (bytes[lineEnd] !== 10) throw malformed("a chunk longer than its size");
    this.state = "chunk-size";
    return lineEnd + 1;
  }

  private readTrailer(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(10, from);
    if (this.trailerBytes + (end < 0 ? bytes.length : end) - from > maxTrailerBytes)
      throw malformed("the trailer is too long");
    if (end < 0) return -1;
    this.trailerBytes += end + 1 - from;
    if (end === from || (end === from + 1 && bytes[from] === 13)) this.finish(this.keepAlive);
    return end + 1;
  }

  private finish(reusable: boolean): void {
    this.state = reusable ? "head" : "done";
    this.trailerBytes = 0;
    this.complete = true;
  }

  /**
   * Ends the response. No further request was sent yet, so bytes behind the end belong to no
   * answer: they are dropped together with the connection, so that they cannot be taken for another
   * request's answer.
   */
  private tellEnd(isLastByte: boolean): void {
    this.complete = false;
    if (!isLastByte) this.state = "done";
    this.sink.onEnd(this.state === "head");
  }
}

/** An answer whose body is still to be read. Every answer has to be read to its end or aborted. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: ResponseHead["headers"];
  /**
   * Returns the next piece of the decoded body; undefined at its end. Rejects with an
   * `UpstreamFailure`. A piece that has arrived is returned without a promise, since streams ask
   * once for each event.
   */
  next(): Promise<Uint8Array | undefined> | Uint8Array | undefined;
  /**
   * Passes the next piece to a reader as soon as the socket has it, where `next` would return a
   * promise. Returns false where nothing has to be waited for.
   */
  tellNext?(reader: PieceReader): boolean;
  /**
   * Returns the whole decoded body as text where all of it has arrived; undefined leaves it to
   * `readText`.
   */
  takeText?(limitBytes: number): string | undefined;
  /** Reads the whole decoded body as text. Rejects with an `UpstreamFailure`. */
  readText(limitBytes: number): Promise<string>;
  /** Notes that the answer goes on, so that only silence of the idle timeout ends it. */
  expectMore(): void;
  /** Notes that the content is complete: the answer is aborted unless it ends soon. */
  expectEnd(): void;
  abort(): void;
}

/** Receives the next bytes of a body, its end, or the failure that ended it. */
export type PieceReader = Waiter<Uint8Array | undefined>;

/** What waits for a value, or for the failure in its place. */
export interface Waiter<T> {
  resolve(value: T): void;
  reject(failure: UpstreamFailure): void;
}

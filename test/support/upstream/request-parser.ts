/** A request as it was received. */
export interface ParsedRequest {
  method: string;
  /** Path with its query, as sent. */
  path: string;
  headers: Headers;
  body: Uint8Array;
}

type Phase = "head" | "sized-body" | "chunk-size" | "chunk-data" | "chunk-end" | "trailers";

const lineEnd = Buffer.from("\r\n");
const headEnd = Buffer.from("\r\n\r\n");

/**
 * Reads HTTP/1.1 requests from bytes that arrive in any portions: pipelined ones, bodies with a
 * length and chunked ones (RFC 9112). Throws on bytes that are not HTTP.
 */
export class RequestParser {
  private readonly onExpectContinue: () => void;
  private phase: Phase = "head";
  private unread: Buffer = Buffer.alloc(0);
  private head: Omit<ParsedRequest, "body"> | undefined;
  private bodyParts: Buffer[] = [];
  /** Bytes of the body or of the chunk that have not arrived. */
  private missingBytes = 0;
  private isComplete = false;

  /** Calls `onExpectContinue` when a client waits for a `100 Continue` before it sends its body. */
  constructor(onExpectContinue: () => void) {
    this.onExpectContinue = onExpectContinue;
  }

  /** Adds bytes and returns the requests that they complete. */
  push(bytes: Uint8Array): ParsedRequest[] {
    this.unread =
      this.unread.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.unread, bytes]);
    const complete: ParsedRequest[] = [];
    while (this.advance()) {
      const request = this.takeComplete();
      if (request) complete.push(request);
    }
    return complete;
  }

  private takeComplete(): ParsedRequest | undefined {
    if (!this.isComplete || this.head === undefined) return undefined;
    const request = { ...this.head, body: Buffer.concat(this.bodyParts) };
    this.isComplete = false;
    this.phase = "head";
    this.head = undefined;
    this.bodyParts = [];
    return request;
  }

  /** Makes one step; returns false when it needs more bytes. */
  private advance(): boolean {
    switch (this.phase) {
      case "head":
        return this.readHead();
      case "sized-body":
        return this.readData(() => {
          this.isComplete = true;
        });
      case "chunk-size":
        return this.readLine((line) => this.startChunk(line));
      case "chunk-data":
        return this.readData(() => {
          this.phase = "chunk-end";
        });
      case "chunk-end":
        return this.readLine(() => {
          this.phase = "chunk-size";
        });
      case "trailers":
        return this.readLine((line) => {
          this.isComplete = line === "";
        });
    }
  }

  private readHead(): boolean {
    const end = this.unread.indexOf(headEnd);
    if (end === -1) return false;
    const text = this.unread.toString("latin1", 0, end);
    this.unread = this.unread.subarray(end + headEnd.length);
    this.head = parseHead(text);
    this.startBody(this.head.headers);
    return true;
  }

  private startBody(headers: Headers): void {
    const chunked = headers.get("transfer-encoding")?.toLowerCase() === "chunked";
    this.missingBytes = Number(headers.get("content-length") ?? "0");
    if (!Number.isSafeInteger(this.missingBytes))
      throw new Error("the content-length is no number");
    this.phase = chunked ? "chunk-size" : "sized-body";
    if (headers.get("expect")?.toLowerCase() === "100-continue") this.onExpectContinue();
  }

  private startChunk(line: string): void {
    this.missingBytes = Number.parseInt(line, 16);
    if (Number.isNaN(this.missingBytes)) throw new Error(`'${line}' is no chunk size`);
    this.phase = this.missingBytes === 0 ? "trailers" : "chunk-data";
  }

  private readLine(then: (line: string) => void): boolean {
    const end = this.unread.indexOf(lineEnd);
    if (end === -1) return false;
    const line = this.unread.toString("latin1", 0, end);
    this.unread = this.unread.subarray(end + lineEnd.length);
    then(line);
    return true;
  }

  private readData(then: () => void): boolean {
    const part = this.unread.subarray(0, this.missingBytes);
    if (part.length > 0) this.bodyParts.push(part);
    this.unread = this.unread.subarray(part.length);
    this.missingBytes -= part.length;
    if (this.missingBytes > 0) return false;
    then();
    return true;
  }
}

function parseHead(text: string): Omit<ParsedRequest, "body"> {
  const [requestLine = "", ...lines] = text.split("\r\n");
  const [method, path, version] = requestLine.split(" ");
  if (!method || !path || !version?.startsWith("HTTP/1.")) {
    throw new Error(`'${requestLine}' is no request line`);
  }
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return { method, path, headers };
}

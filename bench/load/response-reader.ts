const headEnd = Buffer.from("\r\n\r\n");
const byteD = 0x64;
const byteNewline = 0x0a;
const byteCarriageReturn = 0x0d;

/** What a reader has to tell about one response. */
export interface ResponseHandler {
  /** Called once a response, with its status. */
  onHead(status: number): void;
  /** Called for each piece of the body as it arrives, without its chunk framing. */
  onBody(piece: Buffer): void;
  onEnd(): void;
}

type State = "head" | "length" | "chunk-size" | "chunk-data" | "chunk-end" | "trailer";

/**
 * Reads HTTP/1.1 responses from the bytes of one connection: bodies with a length and chunked ones.
 * It exists because a load generator must cost less than what it measures; anything it does not
 * know is an error.
 */
export class ResponseReader {
  private state: State = "head";
  private pending: Buffer | undefined;
  private left = 0;
  private readonly handler: ResponseHandler;

  constructor(handler: ResponseHandler) {
    this.handler = handler;
  }

  /**
   * Takes what a socket read; throws on what is no HTTP/1.1 response. The bytes may be reused
   * afterwards.
   */
  feed(data: Buffer): void {
    let input = data;
    if (this.pending !== undefined) {
      input = Buffer.concat([this.pending, data]);
      this.pending = undefined;
    }
    let offset = 0;
    while (offset < input.length) {
      const next = this.step(input, offset);
      if (next === offset) break;
      offset = next;
    }
    if (offset < input.length) this.pending = Buffer.from(input.subarray(offset));
  }

  /**
   * Works on one unit of input from `offset` and says where the next starts; the same offset means
   * "more bytes".
   */
  private step(input: Buffer, offset: number): number {
    switch (this.state) {
      case "head":
        return this.readHead(input, offset);
      case "chunk-size":
        return this.readChunkSize(input, offset);
      case "chunk-end":
        return this.readChunkEnd(input, offset);
      case "trailer":
        return this.readTrailer(input, offset);
      default:
        return this.readBody(input, offset);
    }
  }

  private readHead(input: Buffer, offset: number): number {
    const end = input.indexOf(headEnd, offset);
    if (end < 0) return offset;
    const head = input.toString("latin1", offset, end);
    if (!head.startsWith("HTTP/1.1 "))
      throw new Error(`no HTTP/1.1 response: ${head.slice(0, 40)}`);
    this.handler.onHead(Number(head.slice(9, 12)));
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length !== undefined) this.expectBody(Number(length));
    else if (/\r\ntransfer-encoding: *chunked/i.test(head)) this.state = "chunk-size";
    else throw new Error("a response with neither a length nor chunks");
    return end + headEnd.length;
  }

  private expectBody(length: number): void {
    this.left = length;
    if (length === 0) this.finish();
    else this.state = "length";
  }

  private readBody(input: Buffer, offset: number): number {
    const end = Math.min(input.length, offset + this.left);
    this.left -= end - offset;
    this.handler.onBody(input.subarray(offset, end));
    if (this.left > 0) return end;
    if (this.state === "length") this.finish();
    else this.state = "chunk-end";
    return end;
  }

  private readChunkSize(input: Buffer, offset: number): number {
    const end = input.indexOf(byteNewline, offset);
    if (end < 0) return offset;
    const size = Number.parseInt(input.toString("latin1", offset, end), 16);
    if (Number.isNaN(size)) throw new Error("a chunk without a size");
    this.left = size;
    this.state = size === 0 ? "trailer" : "chunk-data";
    return end + 1;
  }

  private readChunkEnd(input: Buffer, offset: number): number {
    if (input.length < offset + 2) return offset;
    this.state = "chunk-size";
    return offset + 2;
  }

  private readTrailer(input: Buffer, offset: number): number {
    const end = input.indexOf(byteNewline, offset);
    if (end < 0) return offset;
    if (input[offset] === byteCarriageReturn || end === offset) this.finish();
    return end + 1;
  }

  private finish(): void {
    this.state = "head";
    this.handler.onEnd();
  }
}

/** Counts the `data:` lines of an event stream, however its bytes are cut. */
export class EventCounter {
  private atLineStart = true;
  count = 0;

  feed(piece: Buffer): void {
    let { atLineStart } = this;
    for (let index = 0; index < piece.length; index += 1) {
      const byte = piece[index];
      if (atLineStart && byte === byteD) this.count += 1;
      atLineStart = byte === byteNewline;
    }
    this.atLineStart = atLineStart;
  }
}

import { HttpFault } from "./http-fault.ts";

const lineBytesMax = 4 * 1024;
const trailerBytesMax = 16 * 1024;

/** One to twelve hexadecimal digits; what follows a semicolon means nothing to us. */
const sizeLine = /^([0-9a-fA-F]{1,12})[ \t]*(?:;[^\r\n]*)?$/;

type Part = "size" | "data" | "data-end" | "trailer";

/** Reads the chunked coding of a request's body (RFC 9112, 7.1); only CRLF ends a line. */
export class ChunkedDecoder {
  complete = false;
  private part: Part = "size";
  private left = 0;
  private trailerBytes = 0;

  /** Hands on the body's bytes and tells where it stopped, which may be short of the end where a line is not whole. */
  push(bytes: Buffer, from: number, onData: (start: number, end: number) => void): number {
    let position = from;
    while (!this.complete && position < bytes.length) {
      const next = this.part === "data" ? this.readData(bytes, position, onData) : this.readLine(bytes, position);
      if (next === position) break;
      position = next;
    }
    return position;
  }

  private readData(bytes: Buffer, from: number, onData: (start: number, end: number) => void): number {
    const end = Math.min(bytes.length, from + this.left);
    this.left -= end - from;
    if (end > from) onData(from, end);
    if (this.left === 0) this.part = "data-end";
    return end;
  }

  private readLine(bytes: Buffer, from: number): number {
    const end = bytes.indexOf("\r\n", from);
    if (end < 0 || end - from > lineBytesMax) {
      if (bytes.length - from > lineBytesMax) throw new HttpFault(400, "A line of the chunked body is too long.");
      return from;
    }
    this.takeLine(bytes.toString("latin1", from, end));
    return end + 2;
  }

  private takeLine(line: string): void {
    if (this.part === "size") {
      const size = sizeLine.exec(line)?.[1];
      if (size === undefined) throw new HttpFault(400, "A chunk of the body has no size.");
      this.left = Number.parseInt(size, 16);
      this.part = this.left === 0 ? "trailer" : "data";
    } else if (this.part === "data-end") {
      if (line !== "") throw new HttpFault(400, "A chunk of the body is longer than its size.");
      this.part = "size";
    } else if (line === "") {
      this.complete = true;
    } else {
      this.trailerBytes += line.length;
      if (this.trailerBytes > trailerBytesMax) throw new HttpFault(400, "The trailer of the body is too long.");
    }
  }
}

const headEnd = Buffer.from("\r\n\r\n");
/** Where model and stream flag are looked for: gateways may move them to either end of the body. */
const windowBytes = 2_048;

/** What the mock has to know of a request. */
export type MockRequest =
  | { kind: "chat"; stream: boolean; model: "large" | "paced" | "quiet" }
  | { kind: "other"; path: string };

/** Reads requests from the bytes of one connection without keeping their bodies. */
export class RequestReader {
  private readonly onRequest: (request: MockRequest) => void;
  private pending: Buffer | undefined;
  private path = "";
  private bodyLeft = 0;
  private bodyHead = "";
  private bodyTail = "";

  constructor(onRequest: (request: MockRequest) => void) {
    this.onRequest = onRequest;
  }

  /**
   * Takes what a socket read; a request without a length is taken to have no body, chunked ones are
   * refused.
   */
  feed(data: Buffer): void {
    let input = data;
    if (this.pending !== undefined) {
      input = Buffer.concat([this.pending, data]);
      this.pending = undefined;
    }
    let offset = 0;
    while (offset < input.length) {
      if (this.bodyLeft > 0) {
        offset = this.readBody(input, offset);
        continue;
      }
      const end = input.indexOf(headEnd, offset);
      if (end < 0) break;
      this.readHead(input.toString("latin1", offset, end));
      offset = end + headEnd.length;
    }
    if (offset < input.length) this.pending = Buffer.from(input.subarray(offset));
  }

  private readHead(head: string): void {
    const pathStart = head.indexOf(" ") + 1;
    this.path = head.slice(pathStart, head.indexOf(" ", pathStart));
    if (/\r\ntransfer-encoding:/i.test(head)) throw new Error("the mock takes no chunked requests");
    this.bodyLeft = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    this.bodyHead = "";
    this.bodyTail = "";
    if (this.bodyLeft === 0) this.onRequest({ kind: "other", path: this.path });
  }

  private readBody(input: Buffer, offset: number): number {
    const end = Math.min(input.length, offset + this.bodyLeft);
    this.bodyLeft -= end - offset;
    const missing = windowBytes - this.bodyHead.length;
    if (missing > 0)
      this.bodyHead += input.toString("latin1", offset, Math.min(end, offset + missing));
    const tail = input.toString("latin1", Math.max(offset, end - windowBytes), end);
    this.bodyTail = tail.length === windowBytes ? tail : (this.bodyTail + tail).slice(-windowBytes);
    if (this.bodyLeft === 0) this.finish();
    return end;
  }

  private finish(): void {
    if (!this.path.endsWith("/chat/completions"))
      return this.onRequest({ kind: "other", path: this.path });
    const seen = this.bodyHead + this.bodyTail;
    const model = seen.includes('paced"') ? "paced" : seen.includes('quiet"') ? "quiet" : "large";
    this.onRequest({ kind: "chat", stream: /"stream": ?true/.test(seen), model });
  }
}

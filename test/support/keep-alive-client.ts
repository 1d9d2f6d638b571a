import { connect, type Socket } from "node:net";

/** The result of one request on a connection. */
export type RawReply =
  | { complete: true; status: number; headers: Headers; body: string; closesConnection: boolean }
  /** The connection ended before the answer did; `received` is the part that arrived. */
  | { complete: false; received: string };

/**
 * An HTTP/1.1 client that sends one request after the other on one connection, and neither retries
 * nor reconnects.
 */
export class KeepAliveClient {
  readonly #socket: Socket;
  #buffer = Buffer.alloc(0);
  #over = false;
  #wake: () => void = () => undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (bytes: Buffer) => {
      this.#buffer = Buffer.concat([this.#buffer, bytes]);
      this.#wake();
    });
    const end = (): void => {
      this.#over = true;
      this.#wake();
    };
    socket.on("end", end).on("error", end).on("close", end);
  }

  /** Connects to a port of 127.0.0.1; rejects when no server listens there. */
  static connect(port: number): Promise<KeepAliveClient> {
    const { promise, resolve, reject } = Promise.withResolvers<KeepAliveClient>();
    const socket = connect(port, "127.0.0.1");
    socket.once("error", reject);
    socket.once("connect", () => resolve(new KeepAliveClient(socket)));
    return promise;
  }

  /** Whether the client has seen the server close the connection. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Sends a request, with a JSON body if one is given, and reads its answer to the end. */
  async request(
    path: string,
    { secret = "", body }: { secret?: string; body?: unknown } = {},
  ): Promise<RawReply> {
    const text = body === undefined ? "" : JSON.stringify(body);
    const head = [
      `${body === undefined ? "GET" : "POST"} ${path} HTTP/1.1`,
      "host: 127.0.0.1",
      `authorization: Bearer ${secret}`,
      ...(body === undefined
        ? []
        : ["content-type: application/json", `content-length: ${Buffer.byteLength(text)}`]),
    ];
    this.#socket.write(`${head.join("\r\n")}\r\n\r\n${text}`);
    return this.#readReply();
  }

  close(): void {
    this.#socket.destroy();
  }

  async #readReply(): Promise<RawReply> {
    for (;;) {
      const reply = parseReply(this.#buffer);
      if (reply !== undefined) {
        this.#buffer = this.#buffer.subarray(reply.length);
        return reply.parsed;
      }
      if (this.#over) return { complete: false, received: this.#buffer.toString() };
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
  }
}

/**
 * Returns the whole answer at the start of the bytes and its length in bytes; undefined while a
 * part of it is missing.
 */
function parseReply(bytes: Buffer): { parsed: RawReply; length: number } | undefined {
  const headLength = bytes.indexOf("\r\n\r\n") + 4;
  if (headLength === 3) return undefined;
  const [statusLine = "", ...lines] = bytes.toString("latin1", 0, headLength - 4).split("\r\n");
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
  const body =
    headers.get("transfer-encoding") === "chunked"
      ? chunkedBody(bytes, headLength)
      : sizedBody(bytes, { at: headLength, size: Number(headers.get("content-length")) });
  if (body === undefined) return undefined;
  return {
    length: body.end,
    parsed: {
      complete: true,
      status: Number(statusLine.split(" ")[1]),
      headers,
      body: body.text,
      closesConnection: headers.get("connection")?.toLowerCase() === "close",
    },
  };
}

function sizedBody(
  bytes: Buffer,
  { at, size }: { at: number; size: number },
): { text: string; end: number } | undefined {
  return bytes.length < at + size
    ? undefined
    : { text: bytes.toString("utf8", at, at + size), end: at + size };
}

function chunkedBody(bytes: Buffer, start: number): { text: string; end: number } | undefined {
  const chunks: Buffer[] = [];
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd === -1) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    const end = lineEnd + 2 + size + 2;
    if (bytes.length < end) return undefined;
    if (size === 0) return { text: Buffer.concat(chunks).toString(), end };
    chunks.push(bytes.subarray(lineEnd + 2, end - 2));
    at = end;
  }
}

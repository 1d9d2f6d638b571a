import type { Framing, HeadStep, WireStep } from "./steps.ts";

const reasons: Readonly<Record<number, string>> = {
  200: "OK",
  400: "Bad Request",
  401: "Unauthorized",
  402: "Payment Required",
  403: "Forbidden",
  404: "Not Found",
  408: "Request Timeout",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
};

/** Encodes the steps of one answer and knows when the answer is complete. */
export class WireWriter {
  private framing: Framing | undefined;
  private sentBodyBytes = 0;
  private ended = false;

  /** Whether the client has received, or can see, the end of the answer. */
  get isComplete(): boolean {
    const { framing } = this;
    if (typeof framing === "object") return this.sentBodyBytes >= framing.contentLength;
    return this.ended;
  }

  /** Whether the answer ends with the connection. */
  get endsWithConnection(): boolean {
    return this.ended && this.framing === "until-close";
  }

  /** Returns the encoded bytes of a step; none for a step that writes nothing. */
  encode(step: WireStep): Uint8Array {
    switch (step.kind) {
      case "head":
        return this.encodeHead(step);
      case "body":
        return this.encodeBody(step.bytes);
      case "raw":
        return step.bytes;
      case "end":
        return this.encodeEnd();
    }
  }

  private encodeHead({ status, headers, framing }: HeadStep): Uint8Array {
    this.framing = framing;
    const framed = {
      ...(framing === "chunked" ? { "transfer-encoding": "chunked" } : {}),
      ...(framing === "until-close" ? { connection: "close" } : {}),
      ...(typeof framing === "object" ? { "content-length": String(framing.contentLength) } : {}),
      ...headers,
    };
    const lines = Object.entries(framed).map(([name, value]) => `${name}: ${value}\r\n`);
    return Buffer.from(
      `HTTP/1.1 ${status} ${reasons[status] ?? "Status"}\r\n${lines.join("")}\r\n`,
    );
  }

  private encodeBody(bytes: Uint8Array): Uint8Array {
    this.sentBodyBytes += bytes.length;
    if (this.framing !== "chunked") return bytes;
    return Buffer.concat([
      Buffer.from(`${bytes.length.toString(16)}\r\n`),
      bytes,
      Buffer.from("\r\n"),
    ]);
  }

  private encodeEnd(): Uint8Array {
    this.ended = true;
    return Buffer.from(this.framing === "chunked" ? "0\r\n\r\n" : "");
  }
}

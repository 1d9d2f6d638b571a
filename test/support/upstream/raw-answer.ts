/** An HTTP answer read from raw bytes. */
export interface RawAnswer {
  /** Undefined when the bytes do not start with a whole HTTP head. */
  status: number | undefined;
  headers: Headers;
  /** The part of the body that arrived, without framing and compression. */
  body: string;
  /** Whether the whole body arrived, according to its framing. */
  complete: boolean;
}

interface Unframed {
  bytes: Buffer;
  complete: boolean;
}

/**
 * Reads the answer of a connection that has ended; this reader shares no code with the gateway's.
 */
export function readRawAnswer(wire: Buffer): RawAnswer {
  const headEnd = wire.indexOf("\r\n\r\n");
  const lines = wire.toString("latin1", 0, headEnd).split("\r\n");
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(lines[0] ?? "")?.[1];
  if (headEnd === -1 || status === undefined) {
    return { status: undefined, headers: new Headers(), body: "", complete: false };
  }
  const headers = new Headers(
    lines.slice(1).map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
  const { bytes, complete } = unframe(wire.subarray(headEnd + 4), headers);
  const plain =
    headers.get("content-encoding") === "gzip" ? Bun.gunzipSync(new Uint8Array(bytes)) : bytes;
  return { status: Number(status), headers, body: Buffer.from(plain).toString("utf8"), complete };
}

function unframe(framed: Buffer, headers: Headers): Unframed {
  if (headers.get("transfer-encoding") === "chunked") return unchunk(framed);
  const length = headers.get("content-length");
  return { bytes: framed, complete: length === null || framed.length === Number(length) };
}

function unchunk(framed: Buffer): Unframed {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = framed.indexOf("\r\n", at);
    const size =
      lineEnd === -1 ? Number.NaN : Number.parseInt(framed.toString("latin1", at, lineEnd), 16);
    if (Number.isNaN(size) || size === 0)
      return { bytes: Buffer.concat(parts), complete: size === 0 };
    parts.push(framed.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}

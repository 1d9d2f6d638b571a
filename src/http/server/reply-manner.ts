/** How the request wants to be answered. */
export interface ReplyManner {
  /** A HEAD request: everything but the body. */
  withoutBody: boolean;
  /** Whether the client knows chunks, as HTTP/1.1 has them. */
  knowsChunks: boolean;
  /** Whether the connection ends with this answer; `kept` where a client that speaks HTTP/1.0 is told that it does not. */
  closes: boolean | "kept";
  nowMs: number;
}

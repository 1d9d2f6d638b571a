/** The response that a request continues, where the provider's socket remembers it. */
export interface SocketContinuation {
  /** The provider's own id. */
  responseId: string;
  /** The number of items of the whole conversation. */
  itemCount: number;
  /** The number of those, at its end, that the response does not contain. */
  newCount: number;
}

/** A frame that a provider's socket has sent. */
export interface SocketFrame {
  /** `end` is the last event of a response; `error` refuses one, or breaks it off. */
  kind: "event" | "end" | "error" | "malformed";
  /** The event in the form of server-sent events. */
  sse: string;
  /** The id of a response that ended, and can be continued on its socket. */
  responseId?: string | undefined;
}

/** The form of requests and answers on a WebSocket, where a dialect has one. */
export interface SocketMode {
  /** Returns the frame of a request, from the text of the same request over HTTP. */
  requestFrame(text: string, continued: SocketContinuation | undefined): string;
  readFrame(text: string): SocketFrame;
}

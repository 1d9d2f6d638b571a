/** What happens on a provider's side of a session. */
export interface RealtimeUpstreamEvents {
  received(text: string): void;
  /** Called once. `code` is 1006 where the connection broke. */
  closed(code: number, reason: string): void;
}

/** A provider's side of a session, in the events of OpenAI's Realtime API (GA). */
export interface RealtimeUpstream {
  /** Receives what comes from now on, and what has come before. */
  listen(events: RealtimeUpstreamEvents): void;
  send(text: string): void;
  /** The bytes that wait to be sent. */
  readonly waitingBytes: number;
  close(): void;
}

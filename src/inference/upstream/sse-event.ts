/** One server-sent event: its `event:` name where it had one, and its data lines joined by line feeds. */
export interface SseEvent {
  event?: string;
  data: string;
}

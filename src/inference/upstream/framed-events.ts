import type { EventReader, EventDecoder, SseEvent } from "./sse-decoder.ts";

/** Reads the events of a binary stream one by one. */
export class FramedEvents implements EventReader {
  readonly text = "";
  readonly isBetween = false;
  position = 0;
  private events: SseEvent[] = [];
  private index = 0;

  constructor(private readonly decoder: EventDecoder) {}

  read(chunk: Uint8Array): void {
    this.take(this.decoder.push(chunk));
  }

  finish(): void {
    this.take(this.decoder.end());
  }

  next(): SseEvent | undefined {
    const event = this.events[this.index];
    this.index += 1;
    return event;
  }

  private take(events: SseEvent[]): void {
    this.events = events;
    this.index = 0;
  }
}

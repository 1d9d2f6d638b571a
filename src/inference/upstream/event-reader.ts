import type { SseEvent } from "./sse-event.ts";

/** The text that events stand in; whoever knows events by their text may take them there, and moves the position behind them. */
export interface EventText {
  /** Whole lines, each ended by a line feed. */
  readonly text: string;
  /** Where what was not told begins. */
  position: number;
  /** Nothing of an event was read before the position. */
  readonly isBetween: boolean;
}

/** Bytes to events, which are asked for one by one. Throws `UpstreamFailure` for what cannot be read. */
export interface EventReader extends EventText {
  /** Takes the next piece, once all events before it were told. The piece may be reused by its owner afterwards. */
  read(chunk: Uint8Array): void;
  /** No more pieces come. */
  finish(): void;
  /** The next event of what was read; undefined where more has to come. */
  next(): SseEvent | undefined;
}

/** Finds the events in bytes that are no text. */
export interface EventDecoder {
  push(chunk: Uint8Array): SseEvent[];
  end(): SseEvent[];
}

/** Events of bytes that are no text, one by one. */
export class FramedEvents implements EventReader {
  readonly text = "";
  readonly isBetween = false;
  position = 0;
  private readonly decoder: EventDecoder;
  private events: SseEvent[] = [];
  private index = 0;

  constructor(decoder: EventDecoder) {
    this.decoder = decoder;
  }

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

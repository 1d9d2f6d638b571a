import { eventsPerStream, timedChunk } from "./mock-responses.ts";

/** How a stream is fed. */
export interface PacedStream {
  send(bytes: Buffer): void;
  end(): void;
}

interface Pace extends PacedStream {
  nextIndex: number;
  nextAtMs: number;
}

/**
 * Wall time with microseconds; two processes of one machine agree on it well enough to subtract a
 * baseline.
 */
export const preciseNowMs = (): number => performance.timeOrigin + performance.now();

/**
 * Streams that get an event at a steady pace, their beats spread over the interval as those of real
 * models are.
 */
export class PacedStreams<Key> {
  private readonly intervalMs: number;
  private readonly streams = new Map<Key, Pace>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private begun = 0;

  constructor(intervalMs: number) {
    this.intervalMs = intervalMs;
  }

  /** Takes over a stream whose event 0 has been sent. */
  add(key: Key, stream: PacedStream): void {
    this.begun += 1;
    const phaseMs = (this.begun * 7) % this.intervalMs;
    this.streams.set(key, {
      ...stream,
      nextIndex: 1,
      nextAtMs: performance.now() + this.intervalMs + phaseMs,
    });
    this.timer ??= setInterval(() => this.tick(), 1);
  }

  delete(key: Key): void {
    this.streams.delete(key);
    if (this.streams.size === 0) this.stop();
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private tick(): void {
    const nowMs = performance.now();
    for (const [key, stream] of this.streams) {
      if (stream.nextAtMs > nowMs) continue;
      stream.nextAtMs += this.intervalMs;
      stream.send(timedChunk(stream.nextIndex, preciseNowMs()));
      stream.nextIndex += 1;
      if (stream.nextIndex < eventsPerStream) continue;
      stream.end();
      this.delete(key);
    }
  }
}

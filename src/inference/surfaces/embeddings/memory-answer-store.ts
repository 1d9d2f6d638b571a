import type { Clock } from "../../../platform/lib/clock.ts";
import type { AnswerStore, KeptAnswer } from "./answer-cache.ts";

/** What an entry costs beside its texts: key, object and place in the map. */
const entryBytes = 512;

interface Entry {
  answer: KeptAnswer;
  bytes: number;
  expiresMs: number;
}

/** JSON of vectors is ASCII, which takes a byte a character. */
const bytesOf = ({ tail, model, provider, upstreamModel }: KeptAnswer): number =>
  entryBytes + Buffer.byteLength(tail) + model.length + provider.length + upstreamModel.length;

/** Answers in memory, those that were asked for longest ago forgotten first. */
export class MemoryAnswerStore implements AnswerStore {
  private readonly entries = new Map<string, Entry>();
  private readonly clock: Clock;
  private readonly bytesMax: number;
  private held = 0;

  constructor({ clock, bytesMax }: { clock: Clock; bytesMax: number }) {
    this.clock = clock;
    this.bytesMax = bytesMax;
  }

  /** Bytes that are held, estimated. */
  get heldBytes(): number {
    return this.held;
  }

  get(key: string): KeptAnswer | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    this.entries.delete(key);
    if (entry.expiresMs <= this.clock.monotonicMs()) {
      this.held -= entry.bytes;
      return undefined;
    }
    this.entries.set(key, entry);
    return entry.answer;
  }

  set(key: string, answer: KeptAnswer, ttlSeconds: number): void {
    this.drop(key);
    const bytes = bytesOf(answer);
    // One answer that fills the store would push out everything else.
    if (bytes > this.bytesMax / 4) return;
    this.entries.set(key, {
      answer,
      bytes,
      expiresMs: this.clock.monotonicMs() + ttlSeconds * 1_000,
    });
    this.held += bytes;
    for (const oldest of this.entries.keys()) {
      if (this.held <= this.bytesMax) break;
      this.drop(oldest);
    }
  }

  private drop(key: string): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    this.entries.delete(key);
    this.held -= entry.bytes;
  }
}

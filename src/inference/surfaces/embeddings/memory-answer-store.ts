import type { Clock } from "../../../platform/kernel/clock.ts";

/** A kept answer: its text after the id, and what its headers say. */
export interface KeptAnswer {
  /** The body's text behind `{"id":"..."`. */
  tail: string;
  model: string;
  /** The provider that generated it. */
  provider: string;
  upstreamModel: string;
}

/**
 * A store of answers, in this process or shared by several. It may lose entries at any time, and is
 * bounded in bytes. A failing store counts as an empty one.
 */
export interface AnswerStore {
  get(key: string): Promise<KeptAnswer | undefined>;
  set(key: string, answer: KeptAnswer, ttlSeconds: number): Promise<void>;
}

/** Bytes of an entry beside its texts: key, object and place in the map. */
const entryBytes = 512;

interface Entry {
  answer: KeptAnswer;
  bytes: number;
  expiresMs: number;
}

/** Returns the bytes of an answer. JSON of vectors is ASCII, which takes a byte per character. */
const bytesOf = ({ tail, model, provider, upstreamModel }: KeptAnswer): number =>
  entryBytes + Buffer.byteLength(tail) + model.length + provider.length + upstreamModel.length;

/** Keeps answers in memory, and evicts the least recently used ones first. */
export class MemoryAnswerStore implements AnswerStore {
  private readonly entries = new Map<string, Entry>();
  private readonly clock: Clock;
  private readonly bytesMax: number;
  private held = 0;

  constructor({ clock, bytesMax }: { clock: Clock; bytesMax: number }) {
    this.clock = clock;
    this.bytesMax = bytesMax;
  }

  /** The estimated number of bytes held. */
  get heldBytes(): number {
    return this.held;
  }

  async get(key: string): Promise<KeptAnswer | undefined> {
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

  async set(key: string, answer: KeptAnswer, ttlSeconds: number): Promise<void> {
    this.drop(key);
    const bytes = bytesOf(answer);
    // One answer that fills the store would evict everything else.
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

/** The most bytes of answers: some ten thousand vectors of 1,024 floats. */
export const bytesMax = 64 * 1024 * 1024;

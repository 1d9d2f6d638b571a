import type { ItemPart } from "../../canonical/stream-part.ts";
import { BlockWriter } from "./block-writer.ts";

/**
 * Puts the items of an answer one after another: Messages clients know one open block at a time and throw
 * at a second one. Parts of an item wait while another is still being written.
 */
export class BlockSequence {
  private readonly writer: BlockWriter;
  private readonly hidesThoughts: boolean;
  private readonly waiting = new Map<number, ItemPart[]>();
  private readonly closed = new Set<number>();
  private current: number | undefined;

  constructor({ hidesThoughts }: { hidesThoughts: boolean }) {
    this.hidesThoughts = hidesThoughts;
    this.writer = new BlockWriter();
  }

  /** True once a call has been announced. */
  get hasCalls(): boolean {
    return this.writer.hasCalls;
  }

  /** Frames that can be written by now. */
  add(part: ItemPart): string[] {
    const { itemIndex } = part;
    if (this.closed.has(itemIndex) || (this.hidesThoughts && part.type.startsWith("reasoning")))
      return [];
    if (this.current === itemIndex && this.waiting.size === 0) return this.write(part);
    const frames: string[] = [];
    // What can take no more text is closed only now: a citation may follow the end of its text.
    if (this.isOther(itemIndex) && this.writer.isDone)
      frames.push(...this.closeCurrent(), ...this.advance());
    if (this.isOther(itemIndex)) {
      this.waiting.set(itemIndex, [...(this.waiting.get(itemIndex) ?? []), part]);
      return frames;
    }
    return [...frames, ...this.write(part), ...this.advance()];
  }

  /** The answer is whole: everything that waits is written, and the last block closed. */
  close(): string[] {
    const frames: string[] = [];
    while (this.current !== undefined || this.waiting.size > 0)
      frames.push(...this.closeCurrent(), ...this.takeNext());
    return frames;
  }

  /** True while another item is being written. */
  private isOther(itemIndex: number): boolean {
    return this.current !== undefined && this.current !== itemIndex;
  }

  private write(part: ItemPart): string[] {
    this.current = part.itemIndex;
    const frames = this.writer.write(part);
    if (this.writer.isClosed) this.forgetCurrent();
    return frames;
  }

  /** Items that have waited, in the order in which they were opened, up to one that is still being written. */
  private advance(): string[] {
    const frames: string[] = [];
    while (this.waiting.size > 0 && (this.current === undefined || this.writer.isDone)) {
      frames.push(...this.closeCurrent(), ...this.takeNext());
    }
    return frames;
  }

  private takeNext(): string[] {
    const [next] = this.waiting;
    if (next === undefined) return [];
    this.waiting.delete(next[0]);
    return next[1].flatMap((part) => this.write(part));
  }

  private closeCurrent(): string[] {
    if (this.current === undefined) return [];
    this.forgetCurrent();
    return this.writer.close();
  }

  private forgetCurrent(): void {
    if (this.current !== undefined) this.closed.add(this.current);
    this.current = undefined;
  }
}

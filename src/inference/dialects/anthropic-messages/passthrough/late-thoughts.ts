interface Block {
  readonly type?: unknown;
  readonly [member: string]: unknown;
}

/** The parts of a stream's event that say which block it belongs to. */
interface BlockEvent {
  type?: unknown;
  index?: unknown;
  content_block?: Block | null;
  delta?: Block | null;
}

const isThought = (type: unknown): boolean => type === "thinking" || type === "redacted_thinking";

/**
 * Returns the blocks of a whole answer with text last, where thinking follows the last text; undefined
 * where nothing has to move. Claude Code takes the last block for the result.
 */
export function withTextLast(content: readonly unknown[]): readonly unknown[] | undefined {
  const typeAt = (index: number): unknown => (Object(content[index]) as Block).type;
  let thoughts = content.length;
  while (thoughts > 0 && isThought(typeAt(thoughts - 1))) thoughts -= 1;
  if (thoughts === content.length || typeAt(thoughts - 1) !== "text") return undefined;
  return [...content.slice(0, thoughts - 1), ...content.slice(thoughts), content[thoughts - 1]];
}

/**
 * Holds back the thinking that follows a text of a stream until another block begins, so that an
 * answer never ends with it (decision 0181). Held thinking at the end is left out: providers take
 * the turn without it.
 */
export class LateThoughts {
  private frames = "";
  private readonly held = new Set<unknown>();
  private readonly seen = new Set<unknown>();
  private followsText = false;

  /** Whether the frames of a block are held back. */
  holds(index: unknown): boolean {
    return this.held.has(index);
  }

  /** Holds further frames of a block that is held back. */
  append(frames: string): void {
    this.frames += frames;
  }

  /** Returns those of the frames of an event, and of the held ones, that are sent now. */
  pass({ type, index, content_block: block, delta }: BlockEvent, frames: string): string {
    if (type === "content_block_start") return this.begin(index, { kind: block?.type, frames });
    if (type !== "content_block_delta" && type !== "content_block_stop") return frames;
    // A block whose start the provider left out.
    if (type === "content_block_delta" && !this.seen.has(index))
      return this.begin(index, { kind: kindOf(delta?.type), frames });
    if (!this.held.has(index)) return frames;
    this.frames += frames;
    return "";
  }

  private begin(index: unknown, { kind, frames }: { kind: unknown; frames: string }): string {
    this.seen.add(index);
    if (!isThought(kind)) {
      const before = this.frames;
      this.frames = "";
      this.held.clear();
      this.followsText = kind === "text";
      return before + frames;
    }
    if (!this.followsText) return frames;
    this.held.add(index);
    this.frames += frames;
    return "";
  }
}

const kindOf = (deltaType: unknown): string =>
  deltaType === "thinking_delta" ? "thinking" : deltaType === "text_delta" ? "text" : "other";

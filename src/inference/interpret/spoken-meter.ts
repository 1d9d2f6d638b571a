import type { FinishReason } from "../canonical/finish-reason.ts";
import type { AssistantPart } from "../canonical/message.ts";
import type { CanonicalResponse } from "../canonical/response.ts";
import type { StreamPart } from "../canonical/stream-part.ts";

/** Counts what a translated answer says: for estimates where nothing is reported, and to tell an answer from silence. */
export class SpokenMeter {
  /** Characters of text, calls, refusals and the like. */
  visibleCharacters = 0;
  /** Characters of thoughts. */
  thoughtCharacters = 0;
  finishReason: FinishReason | null = null;
  private readonly open = new Set<number>();

  observe(part: StreamPart): void {
    switch (part.type) {
      case "text-delta":
        this.say(part.choiceIndex, part.text.length);
        break;
      case "refusal-delta":
        this.say(part.choiceIndex, part.refusal.length);
        break;
      case "tool-call-start":
        this.say(part.choiceIndex, part.name.length + 1);
        break;
      case "tool-call-delta":
        this.say(part.choiceIndex, part.arguments.length);
        break;
      case "audio-delta":
      case "image":
      case "opaque":
        this.say(part.choiceIndex, 1);
        break;
      case "reasoning-delta":
        this.think(part.choiceIndex, part.text.length);
        break;
      case "reasoning-end":
        if (part.encrypted !== undefined) this.think(part.choiceIndex, 1);
        break;
      case "finish":
        this.finishReason ??= part.finish.reason;
        this.open.delete(part.choiceIndex);
        break;
    }
  }

  /** Observes a whole answer, as if its parts had come one by one. */
  observeWhole({ choices }: CanonicalResponse): void {
    for (const { index, parts, finish } of choices) {
      for (const part of parts) this.observeItem(index, part);
      this.finishReason ??= finish.reason;
      this.open.delete(index);
    }
  }

  private observeItem(choiceIndex: number, part: AssistantPart): void {
    switch (part.type) {
      case "text":
        this.say(choiceIndex, part.text.length);
        break;
      case "refusal":
        this.say(choiceIndex, part.refusal.length);
        break;
      case "tool-call":
        this.say(choiceIndex, part.name.length + 1 + part.arguments.length);
        break;
      case "audio-output":
      case "image":
      case "opaque":
        this.say(choiceIndex, 1);
        break;
      case "reasoning":
        for (const summary of part.summary ?? []) this.think(choiceIndex, summary.length);
        this.think(choiceIndex, (part.text?.length ?? 0) + (part.encrypted === undefined ? 0 : 1));
        break;
    }
  }

  /** The choices that have not said how they finished; the first where nobody has said anything. */
  unfinished(): number[] {
    return this.open.size === 0 && this.finishReason === null ? [0] : [...this.open];
  }

  get outputCharacters(): number {
    return this.visibleCharacters + this.thoughtCharacters;
  }

  /** Anything that a client could show or act on has come. */
  get hasContent(): boolean {
    return this.outputCharacters > 0;
  }

  /** Every choice that said something has said how it finished. */
  get finished(): boolean {
    return this.finishReason !== null && this.open.size === 0;
  }

  /** There is content, or an end without any that still tells the client something: cut by its own limit, or filtered. */
  get isAcceptable(): boolean {
    const { finishReason } = this;
    if (this.visibleCharacters > 0) return true;
    if (
      finishReason === null ||
      finishReason === "stop" ||
      finishReason === "tool_calls" ||
      finishReason === "error"
    )
      return false;
    return true;
  }

  private say(choiceIndex: number, characters: number): void {
    if (characters === 0) return;
    this.visibleCharacters += characters;
    this.open.add(choiceIndex);
  }

  private think(choiceIndex: number, characters: number): void {
    if (characters === 0) return;
    this.thoughtCharacters += characters;
    this.open.add(choiceIndex);
  }
}

import type { AssistantPart } from "./message.ts";
import {
  type CanonicalResponse,
  type FinishReason,
  type MeteredUsage,
  type ReasoningEnd,
  type SpokenPart,
  type StreamPart,
  estimateUsage,
} from "./response.ts";
import {
  inputParts,
  isMedia,
  outputParts,
  totalInputTokens,
  totalOutputTokens,
  type Usage,
  type UsagePart,
} from "../../platform/kernel/usage.ts";

/**
 * Counts what an answer contains, in any dialect: for estimates where no usage is reported, and to
 * tell an answer from silence.
 */
export class AnswerMeter {
  /** Characters of text, calls, refusals and the like. */
  visibleCharacters = 0;
  /** Characters of reasoning. */
  thoughtCharacters = 0;
  finishReason: FinishReason | null = null;
  private readonly open = new Set<number>();
  /** The choice that spoke last, which is open; most answers have one. */
  private latest = -1;
  private readonly hidesReasoning: boolean;

  /** `hidesReasoning` says whether a signature is reasoning by itself. */
  constructor(hidesReasoning = false) {
    this.hidesReasoning = hidesReasoning;
  }

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
        this.think(part.choiceIndex, this.sealed(part));
        break;
      case "finish":
        this.finishReason ??= part.finish.reason;
        this.close(part.choiceIndex);
        break;
    }
  }

  /** Observes characters of texts that belong where this one does. */
  observeText({ type, choiceIndex }: SpokenPart, characters: number): void {
    if (type === "reasoning-delta") this.think(choiceIndex, characters);
    else this.say(choiceIndex, characters);
  }

  /** Observes a whole answer as if its parts had come one by one. */
  observeWhole({ choices }: CanonicalResponse): void {
    for (const { index, parts, finish } of choices) {
      for (const part of parts) this.observeItem(index, part);
      this.finishReason ??= finish.reason;
      this.close(index);
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
        this.think(choiceIndex, (part.text?.length ?? 0) + this.sealed(part));
        break;
    }
  }

  /** Returns the choices that have not finished; the first where none has begun. */
  unfinished(): number[] {
    return this.open.size === 0 && this.finishReason === null ? [0] : [...this.open];
  }

  get outputCharacters(): number {
    return this.visibleCharacters + this.thoughtCharacters;
  }

  /** Whether anything has come that a client could show or act on. */
  get hasContent(): boolean {
    return this.outputCharacters > 0;
  }

  /** Whether every choice that began has finished. */
  get finished(): boolean {
    return this.finishReason !== null && this.open.size === 0;
  }

  /**
   * Whether there is content, or an end without any that is meaningful to the client: cut by its
   * own limit, or filtered.
   */
  get isAcceptable(): boolean {
    const { finishReason } = this;
    if (this.hasContent && finishReason !== "error") return true;
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

  /** Returns what the seal of reasoning counts. */
  private sealed({ encrypted, signature }: Pick<ReasoningEnd, "encrypted" | "signature">): number {
    return encrypted !== undefined || (this.hidesReasoning && signature !== undefined) ? 1 : 0;
  }

  private say(choiceIndex: number, characters: number): void {
    if (characters === 0) return;
    this.visibleCharacters += characters;
    if (choiceIndex !== this.latest) this.speak(choiceIndex);
  }

  private think(choiceIndex: number, characters: number): void {
    if (characters === 0) return;
    this.thoughtCharacters += characters;
    if (choiceIndex !== this.latest) this.speak(choiceIndex);
  }

  private speak(choiceIndex: number): void {
    this.open.add(choiceIndex);
    this.latest = choiceIndex;
  }

  private close(choiceIndex: number): void {
    this.open.delete(choiceIndex);
    this.latest = -1;
  }
}

/** What settlement reads of a whole answer, in any dialect. */
interface AnswerFacts {
  upstreamId: string | null;
  finishReason: FinishReason | null;
  /** The provider's usage; undefined when it sent none. */
  metered: MeteredUsage | undefined;
  outputCharacters: number;
  hasContent: boolean;
  /** Whether the whole output cap was spent on reasoning without any content. */
  spentOnReasoning: boolean;
}

/** Returns what settlement reads of a whole answer; see `AnswerMeter`. */
export function answerFacts(response: CanonicalResponse, hidesReasoning?: boolean): AnswerFacts {
  const meter = new AnswerMeter(hidesReasoning);
  meter.observeWhole(response);
  const { finishReason, visibleCharacters, thoughtCharacters } = meter;
  const thought = thoughtCharacters > 0 || (response.usage?.usage.reasoningTokens ?? 0) > 0;
  return {
    upstreamId: response.id === "" ? null : response.id,
    finishReason,
    metered: response.usage,
    outputCharacters: meter.outputCharacters,
    hasContent: meter.isAcceptable,
    spentOnReasoning: visibleCharacters === 0 && finishReason === "length" && thought,
  };
}

/**
 * The multiple of the model's window beyond which a count is not plausible. Smaller excesses are
 * possible: catalogs lag behind, and a window that was raised must not make requests cheaper.
 */
const absurdWindows = 10;

/**
 * Bounds usage to what the model could have consumed. Where a provider reports many times what fits
 * the model's window, the counts are cut to the window and flagged, so that a provider's error
 * empties no balance.
 */
export function boundUsage(metered: MeteredUsage, windowTokens: number): MeteredUsage {
  const { usage } = metered;
  const most = windowTokens * absurdWindows;
  if (totalInputTokens(usage) <= most && totalOutputTokens(usage) <= most) return metered;
  return {
    ...metered,
    usage: {
      ...usage,
      ...cut(usage, inputParts, windowTokens),
      ...cut(usage, outputParts, windowTokens),
    },
    clamped: true,
  };
}

/**
 * The gateway's own estimate or measure of each side of an answer, for providers that report none.
 */
interface Said {
  /** The estimated tokens of the input. */
  inputTokens: number;
  windowTokens: number;
  outputCharacters: number;
}

/**
 * Returns the provider's usage, limited to what is possible. Estimates all of it where the provider
 * reports none, or the side that the provider did not count.
 */
export function boundOrEstimated(reported: MeteredUsage | undefined, said: Said): MeteredUsage {
  const { inputTokens, windowTokens, outputCharacters } = said;
  if (reported === undefined)
    return estimateUsage({ inputCharacters: inputTokens * 4, outputCharacters });
  const bound = boundUsage(reported, windowTokens);
  // Pictures and sound are not metered by the characters of their texts.
  if (isMedia(bound.usage)) return bound;
  const lacks = (parts: readonly UsagePart[]): boolean =>
    parts.every((part) => bound.usage[part] === undefined);
  const lacksOutput = outputCharacters > 0 && lacks(outputParts);
  if (!lacksOutput && !lacks(inputParts)) return bound;
  const { usage } = estimateUsage({ inputCharacters: inputTokens * 4, outputCharacters });
  const { inputTokens: input, outputTokens: output } = usage;
  return {
    ...bound,
    usage: {
      ...bound.usage,
      ...(lacks(inputParts) && { inputTokens: input ?? 0 }),
      ...(lacksOutput && { outputTokens: output ?? 0 }),
    },
    estimated: true,
  };
}

/** Returns the parts of one side, cut so that together they fit; absent ones stay absent. */
function cut(usage: Usage, parts: readonly UsagePart[], most: number): Usage {
  let left = most;
  const kept: Usage = {};
  for (const part of parts) {
    const count = usage[part];
    if (count === undefined) continue;
    kept[part] = Math.min(count, left);
    left -= kept[part];
  }
  return kept;
}

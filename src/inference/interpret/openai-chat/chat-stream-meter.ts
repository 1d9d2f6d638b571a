import { boundUsage } from "../bound-usage.ts";
import type { Finish, FinishReason } from "../../canonical/finish-reason.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { coveringDelivered, type MeteredUsage } from "../../canonical/usage.ts";
import { decodeFinish } from "../../dialects/openai-chat/finish-fields.ts";
import { estimateUsage, readChatUsage } from "../../dialects/openai-chat/read-usage.ts";

/** The parts of a chat chunk that are read while it is relayed. */
export interface ChatChunk {
  id?: unknown;
  created?: unknown;
  choices?: (ChatChoice | null)[];
  usage?: unknown;
  object?: unknown;
  system_fingerprint?: unknown;
  x_groq?: { usage?: unknown };
  error?: { message?: unknown; code?: unknown; type?: unknown } | string | null;
}

interface ChatChoice {
  index?: unknown;
  delta?: ChatDelta | null;
  finish_reason?: unknown;
  error?: { message?: unknown } | null;
}

interface ChatDelta {
  content?: unknown;
  refusal?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  tool_calls?:
    | ({
        function?: { name?: unknown; arguments?: unknown };
        custom?: { input?: unknown };
      } | null)[]
    | null;
  function_call?: { arguments?: unknown } | null;
  audio?: unknown;
}

const textLength = (value: unknown): number => {
  if (typeof value === "string") return value.length;
  return Array.isArray(value)
    ? value.reduce<number>(
        (sum, part: { text?: unknown } | null) => sum + textLength(part?.text),
        0,
      )
    : 0;
};

function deltaLength(delta: ChatDelta): number {
  let length =
    textLength(delta.content) +
    textLength(delta.refusal) +
    textLength(delta.reasoning_content ?? delta.reasoning);
  for (const call of Array.isArray(delta.tool_calls) ? delta.tool_calls : []) {
    length +=
      1 +
      textLength(call?.function?.name) +
      textLength(call?.function?.arguments) +
      textLength(call?.custom?.input);
  }
  if (delta.function_call) length += 1 + textLength(delta.function_call.arguments);
  return delta.audio ? length + 1 : length;
}

/** Ends that tell nothing where nothing was said. */
const quietEnds: ReadonlySet<FinishReason> = new Set([
  "stop",
  "stop_sequence",
  "tool_calls",
  "error",
]);

const isFinish = (reason: unknown): reason is string => typeof reason === "string" && reason !== "";

/** Which choice it is; servers that give one alone may leave it out. */
export const indexOf = ({ index }: ChatChoice): number => (typeof index === "number" ? index : 0);

/**
 * Follows a chat stream for what its settlement needs; one small step per event. Values of another
 * shape than a chunk's count as nothing.
 */
export class ChatStreamMeter {
  /** The word that the upstream wrote. */
  finishReason: string | null = null;
  /** What that word means; undefined while there is none, and of a word that is not known. */
  finish: Finish | undefined;
  /** Whether the final metadata already stood on a chunk of the upstream's. */
  metadataShown = false;
  /** Whether the charge already stood on a chunk of the upstream's. */
  costShown = false;
  private readonly inputTokens: number;
  private readonly windowTokens: number;
  outputCharacters = 0;
  private usage: MeteredUsage | undefined;
  private calledTools = false;
  /** Choices that said something and did not say how they finished. */
  private readonly open = new Set<number>();

  /** `inputTokens` is the estimate for a provider that reports none, `windowTokens` what the model can hold. */
  constructor({ inputTokens, windowTokens }: { inputTokens: number; windowTokens: number }) {
    this.inputTokens = inputTokens;
    this.windowTokens = windowTokens;
  }

  observe(chunk: ChatChunk): void {
    for (const choice of Array.isArray(chunk.choices) ? chunk.choices : []) {
      if (typeof choice === "object" && choice !== null) this.observeChoice(choice);
    }
    const usage = chunk.usage ?? chunk.x_groq?.usage;
    if (usage !== undefined && usage !== null) this.usage = readChatUsage(usage) ?? this.usage;
  }

  /** Counts text that a choice said, of events that need not be read. */
  observeText({ index, characters }: { index: number; characters: number }): void {
    this.outputCharacters += characters;
    this.open.add(index);
  }

  private observeChoice(choice: ChatChoice): void {
    const length = choice.delta ? deltaLength(choice.delta) : 0;
    if (length > 0) {
      this.outputCharacters += length;
      this.open.add(indexOf(choice));
      if (choice.delta?.tool_calls) this.calledTools = true;
    }
    if (isFinish(choice.finish_reason)) {
      this.finishReason = choice.finish_reason;
      this.finish = decodeFinish(choice as JsonObject);
      this.open.delete(indexOf(choice));
    }
  }

  /** Anything that a client could show or act on has come. */
  get hasContent(): boolean {
    return this.outputCharacters > 0;
  }

  /** Every choice that said something has said how it finished. */
  get finished(): boolean {
    return this.finishReason !== null && this.open.size === 0;
  }

  /** Choices that ended without a reason, with the reason that a client needs for each: `reason`, or the one that fits what was said. */
  finishOpen(
    reason = this.calledTools ? "tool_calls" : "stop",
  ): { index: number; reason: string }[] {
    const unsaid = this.finishReason === null && this.open.size === 0 ? [0] : [...this.open];
    const closed = unsaid.map((index) => ({ index, reason }));
    this.open.clear();
    this.finishReason ??= reason;
    return closed;
  }

  /** There is content, or an end without any that still tells the client something: cut by its own limit, or filtered. */
  get isAcceptable(): boolean {
    return this.hasContent || (this.finish !== undefined && !quietEnds.has(this.finish.reason));
  }

  /** Whether the charge belongs on this chunk: it carries usage and is a last one, not one of many. */
  showsUsage(chunk: ChatChunk): boolean {
    if (chunk.usage === undefined || chunk.usage === null || this.usage === undefined) return false;
    if (!Array.isArray(chunk.choices) || chunk.choices.length === 0) return this.finished;
    return this.finished && chunk.choices.some((choice) => isFinish(choice?.finish_reason));
  }

  /** The provider's usage, or an estimate from what was delivered. */
  metered(): MeteredUsage {
    if (this.usage !== undefined) {
      return boundUsage(
        this.finished ? this.usage : coveringDelivered(this.usage, this.outputCharacters),
        this.windowTokens,
      );
    }
    return estimateUsage({
      inputCharacters: this.inputTokens * 4,
      outputCharacters: this.outputCharacters,
    });
  }
}

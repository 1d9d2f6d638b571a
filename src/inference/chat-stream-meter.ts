import type { MeteredUsage } from "./canonical/usage.ts";
import { estimateUsage, readChatUsage } from "./dialects/openai-chat/read-usage.ts";

/** The parts of a chat chunk that are read while it is relayed. */
export interface ChatChunk {
  id?: unknown;
  created?: unknown;
  choices?: { delta?: ChatDelta; finish_reason?: unknown }[];
  usage?: unknown;
  x_groq?: { usage?: unknown };
  error?: { message?: unknown; code?: unknown; type?: unknown } | string | null;
}

interface ChatDelta {
  content?: unknown;
  refusal?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  tool_calls?: { function?: { name?: unknown; arguments?: unknown }; custom?: { input?: unknown } }[] | null;
  function_call?: { arguments?: unknown } | null;
  audio?: unknown;
}

const textLength = (value: unknown): number => {
  if (typeof value === "string") return value.length;
  return Array.isArray(value) ? value.reduce<number>((sum, part: { text?: unknown } | null) => sum + textLength(part?.text), 0) : 0;
};

function deltaLength(delta: ChatDelta): number {
  let length = textLength(delta.content) + textLength(delta.refusal) + textLength(delta.reasoning_content ?? delta.reasoning);
  for (const call of delta.tool_calls ?? []) {
    length += 1 + textLength(call.function?.name) + textLength(call.function?.arguments) + textLength(call.custom?.input);
  }
  if (delta.function_call) length += 1 + textLength(delta.function_call.arguments);
  return delta.audio ? length + 1 : length;
}

/** Follows a chat stream for what its settlement needs; one small step per event. */
export class ChatStreamMeter {
  finishReason: string | null = null;
  created = 0;
  /** Whether the final metadata already stood on a chunk of the upstream's. */
  metadataShown = false;
  private readonly inputTokens: number;
  private outputCharacters = 0;
  private usage: MeteredUsage | undefined;

  constructor(inputTokens: number) {
    this.inputTokens = inputTokens;
  }

  observe(chunk: ChatChunk): void {
    if (this.created === 0 && typeof chunk.created === "number") this.created = chunk.created;
    for (const choice of Array.isArray(chunk.choices) ? chunk.choices : []) {
      if (choice.delta) this.outputCharacters += deltaLength(choice.delta);
      if (typeof choice.finish_reason === "string" && choice.finish_reason !== "") this.finishReason = choice.finish_reason;
    }
    const usage = chunk.usage ?? chunk.x_groq?.usage;
    if (usage !== undefined && usage !== null) this.usage = readChatUsage(usage) ?? this.usage;
  }

  /** Anything that a client could show or act on has come. */
  get hasContent(): boolean {
    return this.outputCharacters > 0;
  }

  get finished(): boolean {
    return this.finishReason !== null;
  }

  /** The answer finished normally with nothing in it. */
  get isEmptyAnswer(): boolean {
    return !this.hasContent && (this.finishReason === "stop" || this.finishReason === "tool_calls");
  }

  /** An end without content that still tells the client something: cut by its own limit, or filtered. */
  get isAcceptable(): boolean {
    return this.hasContent || (this.finishReason !== null && !this.isEmptyAnswer);
  }

  /** Whether the charge belongs on this chunk: it carries usage and is a last one, not one of many. */
  showsUsage(chunk: ChatChunk): boolean {
    if (chunk.usage === undefined || chunk.usage === null || this.usage === undefined) return false;
    if (!Array.isArray(chunk.choices) || chunk.choices.length === 0) return this.finished;
    return chunk.choices.some((choice) => typeof choice.finish_reason === "string" && choice.finish_reason !== "");
  }

  /** The provider's usage, or an estimate from what was delivered. */
  metered(): MeteredUsage {
    return this.usage ?? estimateUsage({ inputCharacters: this.inputTokens * 4, outputCharacters: this.outputCharacters });
  }
}

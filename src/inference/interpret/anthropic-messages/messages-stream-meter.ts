import type { JsonObject } from "../../canonical/json.ts";
import { estimateUsage, type MeteredUsage } from "../../canonical/usage.ts";
import { deltaLength, UsageTally } from "../../dialects/anthropic-messages/usage-tally.ts";
import { boundUsage } from "../bound-usage.ts";
import { isQuietEnd } from "./quiet-end.ts";

/** The parts of an event that are read while it is relayed. */
export interface MessagesEvent {
  type?: unknown;
  index?: unknown;
  message?: { id?: unknown; usage?: unknown } | null;
  content_block?: { type?: unknown; name?: unknown; text?: unknown } | null;
  delta?: (JsonObject & { stop_reason?: unknown }) | null;
  usage?: unknown;
}

/** Follows a Messages stream for what its settlement needs; one small step per event. Values of other shapes count as nothing. */
export class MessagesStreamMeter {
  finishReason: string | null = null;
  upstreamId: string | null = null;
  /** Blocks that the upstream has not closed. */
  readonly openBlocks = new Set<number>();
  private readonly inputTokens: number;
  private readonly windowTokens: number;
  private readonly tally = new UsageTally();
  outputCharacters = 0;
  private calledTools = false;

  /** `inputTokens` is the estimate for a provider that reports none, `windowTokens` what the model can hold. */
  constructor({ inputTokens, windowTokens }: { inputTokens: number; windowTokens: number }) {
    this.inputTokens = inputTokens;
    this.windowTokens = windowTokens;
  }

  observe(event: MessagesEvent): void {
    switch (event.type) {
      case "message_start":
        this.tally.start(event.message?.usage);
        if (typeof event.message?.id === "string") this.upstreamId ??= event.message.id;
        break;
      case "content_block_start":
        if (typeof event.index === "number") this.openBlocks.add(event.index);
        this.observeBlock(event.content_block ?? {});
        break;
      case "content_block_stop":
        if (typeof event.index === "number") this.openBlocks.delete(event.index);
        break;
      case "content_block_delta":
        this.say(event.delta ? charactersOf(event.delta) : 0);
        break;
      case "message_delta":
        this.tally.end(event.usage);
        if (typeof event.delta?.stop_reason === "string")
          this.finishReason ??= event.delta.stop_reason;
        break;
    }
  }

  /** Anything that a client could show or act on has come. */
  get hasContent(): boolean {
    return this.outputCharacters > 0;
  }

  /** There is content, or an end without any that still tells the client something: cut by its own limit, or refused. */
  get isAcceptable(): boolean {
    return this.hasContent || (this.finishReason !== null && !isQuietEnd(this.finishReason));
  }

  /** The reason for a stream that ended without one. */
  get inferredReason(): string {
    return this.calledTools ? "tool_use" : "end_turn";
  }

  /** The provider's usage, or an estimate from what was delivered. */
  metered(): MeteredUsage {
    const reported = this.tally.metered();
    if (reported === undefined)
      return estimateUsage({
        inputCharacters: this.inputTokens * 4,
        outputCharacters: this.outputCharacters,
      });
    const { usage } = reported;
    const whole =
      usage.inputTokens === undefined
        ? { ...reported, usage: { ...usage, inputTokens: this.inputTokens }, estimated: true }
        : reported;
    return boundUsage(whole, this.windowTokens);
  }

  private observeBlock({ type, name, text }: NonNullable<MessagesEvent["content_block"]>): void {
    if (type === "tool_use") this.calledTools = true;
    if (type === "text") this.say(typeof text === "string" ? text.length : 0);
    else if (type !== "thinking") this.say(1 + (typeof name === "string" ? name.length : 0));
  }

  private say(characters: number): void {
    this.outputCharacters += characters;
    this.tally.said(characters);
  }
}

/** A thought whose words are not shown comes as its seal alone. */
const charactersOf = (delta: JsonObject): number =>
  delta.type === "signature_delta" ? 1 : deltaLength(delta);

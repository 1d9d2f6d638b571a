import { brand } from "../../../../platform/kernel/brand.ts";
import type { GatewayError } from "../../../../platform/kernel/errors.ts";
import { editMembers, memberText } from "../../../../platform/kernel/json/json-members.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import type { MeteredUsage } from "../../../canonical/response.ts";
import { AlikeTexts } from "../../shared/stream/alike-texts.ts";
import {
  boundOrEstimated,
  type EventText,
  inOneLine,
  KeptRelay,
  type RelayOptions,
  type SseEvent,
  reportedFault,
  unfinishedStream,
} from "../../shared/passthrough.ts";
import { fallbackMembers } from "../../shared/gateway-facts.ts";
import { fittingEnd, isQuietEnd, pingFrame } from "../answer-fields.ts";
import { encodeStreamError, readStreamError } from "../errors.ts";
import { LateThoughts } from "./late-thoughts.ts";
import { deltaLength, pricedUsageText, UsageTally, withoutCost } from "../usage.ts";

/** Options of a Messages relay. */
interface MessagesRelayOptions extends RelayOptions {
  traceId: string;
}

/**
 * Relays a Messages stream in its own dialect. Every event is passed on as it came, except for id
 * and model at the start, the charge in the last usage and the metadata on `message_stop`. A stream
 * that was cut never looks complete.
 */
export class MessagesRelay extends KeptRelay<MessagesEvent, MessagesStreamMeter> {
  override readonly pingFrame = pingFrame;
  private readonly options: MessagesRelayOptions;
  protected readonly meter: MessagesStreamMeter;
  private readonly alike = new AlikeTexts<{ text: string }>(() => true);
  private readonly late = new LateThoughts();
  /** The `delta` of an ending whose usage has not come, as JSON text. */
  private heldEnding: string | undefined;
  private costShown = false;

  constructor(options: MessagesRelayOptions) {
    super();
    this.options = options;
    this.meter = new MessagesStreamMeter(options);
  }

  get finished(): boolean {
    return this.meter.finishReason !== null;
  }

  get upstreamId(): string | null {
    return this.meter.upstreamId;
  }

  metered(): MeteredUsage {
    return this.meter.metered();
  }

  acceptAlike(events: EventText): string {
    const { alike, meter } = this;
    if (this.late.isHolding) return "";
    const start = events.position;
    for (let taken = alike.take(events); taken !== undefined; taken = alike.take(events))
      meter.say(taken.text.length);
    alike.mark(events);
    return events.text.slice(start, events.position);
  }

  accept(sse: SseEvent): string | Promise<string> {
    const event = this.eventOf(sse);
    const frames = event === undefined ? "" : this.acceptEvent(event, sse);
    const sent =
      event === undefined || typeof frames !== "string" ? frames : this.late.pass(event, frames);
    this.alike.learnKept(event && textAlone(event), sent);
    return sent;
  }

  private acceptEvent(
    event: MessagesEvent,
    { event: name, data }: SseEvent,
  ): string | Promise<string> {
    const type = typeof event.type === "string" ? event.type : name;
    if (type === "error" || (type === undefined && "error" in event))
      throw reportedFault(readStreamError(event as JsonObject));
    event.type = type;
    // Clients throw at a second start, and its usage does not belong to this answer.
    if (type === undefined || (type === "message_start" && this.meter.started)) return "";
    const before = this.missingBefore(event);
    const isUnopened = type === "content_block_stop" && !this.meter.isOpen(event.index);
    this.meter.observe(event);
    const frames = isUnopened ? "" : this.framesOf(type, { data, event });
    if (before === "") return frames;
    return typeof frames === "string" ? before + frames : frames.then((rest) => before + rest);
  }

  private framesOf(
    type: string,
    { data, event }: { data: string; event: MessagesEvent },
  ): string | Promise<string> {
    switch (type) {
      case "message_start":
        return this.startFrame(data);
      case "message_delta":
        return this.ending(this.withFittingEnd(data, event), event);
      case "message_stop":
        return this.stop(data);
      default:
        return eventFrame(type, data);
    }
  }

  /**
   * Returns the events that must precede this one and that the provider omitted: the start of the
   * message, and that of a text or thinking block. Servers that imitate Anthropic omit them, and
   * clients throw without them.
   */
  private missingBefore({ type, index, delta }: MessagesEvent): string {
    const { meter } = this;
    if (!followsStart.has(type)) return "";
    let frames = "";
    if (!meter.started) {
      meter.started = true;
      frames = this.startFrame('{"type":"message_start"}');
    }
    if (type !== "content_block_delta" || meter.isOpen(index)) return frames;
    const block = blockOf(delta?.type);
    if (block === undefined || typeof index !== "number") return frames;
    frames += this.closeBlocks();
    meter.openBlocks.add(index);
    const start = { type: "content_block_start", index, content_block: block };
    return frames + eventFrame(start.type, JSON.stringify(start));
  }

  /**
   * Ends a stream that the upstream closed without `message_stop`. The answer is whole where the
   * upstream had sent a reason for its end.
   */
  finish(): Promise<string> {
    this.assertContent();
    if (!this.finished) throw unfinishedStream();
    return this.stop('{"type":"message_stop"}');
  }

  endAtCap(): Promise<string> {
    this.meter.finishReason ??= "max_tokens";
    return this.stop('{"type":"message_stop"}');
  }

  fail(error: GatewayError): string {
    this.ended = true;
    return encodeStreamError(error, { traceId: this.options.traceId }).join("");
  }

  /**
   * Returns the first event, with the client's id and model and the fallback, since this is the
   * first event with usage.
   */
  private startFrame(data: string): string {
    const { shown, fallback, inputTokens } = this.options;
    const message = memberText(data, "message") ?? "{}";
    const usage = memberText(message, "usage");
    const renamed = editMembers(
      message,
      new Map([
        ...startMembers.filter(([name]) => memberText(message, name) === undefined),
        ["id", JSON.stringify(shown.id)],
        ["model", JSON.stringify(shown.model)],
        // Clients throw at a start without usage.
        [
          "usage",
          usage === undefined
            ? `{"input_tokens":${inputTokens},"output_tokens":0}`
            : withoutCost(usage),
        ],
      ]),
    );
    return eventFrame(
      "message_start",
      editMembers(
        data,
        new Map([
          ["message", renamed],
          ...(fallback === undefined ? [] : fallbackMembers(fallback)),
        ]),
      ),
    );
  }

  /** Returns the event with a stop reason that fits the content; most events have one already. */
  private withFittingEnd(data: string, { delta }: MessagesEvent): string {
    const { finishReason } = this.meter;
    if (typeof delta?.stop_reason !== "string" || delta.stop_reason === finishReason) return data;
    const fitting = editMembers(
      memberText(data, "delta") ?? "{}",
      new Map([["stop_reason", JSON.stringify(finishReason)]]),
    );
    return editMembers(data, new Map([["delta", fitting]]));
  }

  /**
   * Adds the charge to the usage that accompanies the finish reason; the two may come in separate
   * events.
   */
  private ending(data: string, { delta }: MessagesEvent): string | Promise<string> {
    const usage = memberText(data, "usage");
    if (this.costShown) return "";
    if (usage !== undefined && this.finished) return this.withCharge(data, usage);
    if (typeof delta?.stop_reason === "string") {
      this.heldEnding = memberText(data, "delta");
      return "";
    }
    return usage === undefined
      ? eventFrame("message_delta", data)
      : eventFrame("message_delta", editMembers(data, new Map([["usage", withoutCost(usage)]])));
  }

  private async withCharge(data: string, original: string | undefined): Promise<string> {
    this.assertContent();
    const { chargedNano } = await this.options.settle();
    this.costShown = true;
    const edits = new Map([
      [
        "usage",
        pricedUsageText({
          original: original && this.meter.tally.complete(original),
          metered: this.metered(),
          chargedNano,
        }),
      ],
    ]);
    if (this.heldEnding !== undefined) edits.set("delta", this.heldEnding);
    return this.closeBlocks() + eventFrame("message_delta", editMembers(data, edits));
  }

  /** Closes open blocks, since clients accept no ending while a block is open. */
  private closeBlocks(): string {
    const open = [...this.meter.openBlocks];
    this.meter.openBlocks.clear();
    let frames = "";
    for (const index of open) {
      const data = `{"type":"content_block_stop","index":${index}}`;
      const frame = eventFrame("content_block_stop", data);
      if (this.late.holds(index)) this.late.append(frame);
      else frames += frame;
    }
    return frames;
  }

  private async stop(data: string): Promise<string> {
    this.assertContent();
    this.meter.finishReason ??= this.meter.fitting(null);
    const ending = this.costShown ? "" : await this.withCharge(this.ownEnding(), undefined);
    this.ended = true;
    const edits = new Map([[brand.metadataKey as string, this.options.metadataText()]]);
    return ending + eventFrame("message_stop", editMembers(data, edits));
  }

  /** Returns an ending that the upstream did not send, or sent without its usage. */
  private ownEnding(): string {
    const delta = { stop_reason: this.finishReason, stop_sequence: null };
    return JSON.stringify({ type: "message_delta", delta });
  }
}

/** The events that clients accept only after the start of the message. */
const followsStart: ReadonlySet<unknown> = new Set([
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
]);

/** The members that every message has at its start, as JSON text. */
const startMembers: readonly (readonly [name: string, text: string])[] = [
  ["type", '"message"'],
  ["role", '"assistant"'],
  ["content", "[]"],
  ["stop_reason", "null"],
  ["stop_sequence", "null"],
];

/**
 * Returns the empty block that a delta of text or thinking belongs to; undefined for blocks that
 * need a name.
 */
function blockOf(deltaType: unknown): JsonObject | undefined {
  if (deltaType === "text_delta") return { type: "text", text: "" };
  return deltaType === "thinking_delta"
    ? { type: "thinking", thinking: "", signature: "" }
    : undefined;
}

/** Returns an event with the given data, unchanged. */
const eventFrame = (type: string, data: string): string =>
  `event: ${type}\ndata: ${inOneLine(data)}\n\n`;

/**
 * Returns the piece of text, of thinking or of a call's input that is all that an event says;
 * undefined where it says anything else.
 */
function textAlone({ type, delta }: MessagesEvent): { text: string } | undefined {
  if (type !== "content_block_delta" || !delta) return undefined;
  const { type: kind, ...said } = delta;
  const name = textMembers.get(kind);
  const text = name === undefined ? undefined : said[name];
  return typeof text === "string" && Object.keys(said).length === 1 ? { text } : undefined;
}

/** The member of a delta that has its text, by the type of the delta. */
const textMembers: ReadonlyMap<unknown, string> = new Map([
  ["text_delta", "text"],
  ["thinking_delta", "thinking"],
  ["input_json_delta", "partial_json"],
]);

/** The parts of an event that are read while it is relayed. */
interface MessagesEvent {
  type?: unknown;
  index?: unknown;
  message?: { id?: unknown; usage?: unknown } | null;
  content_block?: { type?: unknown; name?: unknown; text?: unknown } | null;
  delta?: (JsonObject & { stop_reason?: unknown }) | null;
  usage?: unknown;
}

/**
 * Follows a Messages stream for its settlement, in one small step per event. Values of other types
 * are ignored.
 */
class MessagesStreamMeter {
  finishReason: string | null = null;
  upstreamId: string | null = null;
  /** Blocks that the upstream has not closed. */
  readonly openBlocks = new Set<number>();
  readonly inputTokens: number;
  readonly windowTokens: number;
  readonly tally = new UsageTally();
  outputCharacters = 0;
  private calledTools = false;
  /** Whether `message_start` was received. */
  started = false;

  /**
   * `inputTokens` is the estimate for a provider that reports none, `windowTokens` the model's
   * context window.
   */
  constructor({ inputTokens, windowTokens }: { inputTokens: number; windowTokens: number }) {
    this.inputTokens = inputTokens;
    this.windowTokens = windowTokens;
  }

  /** Returns whether a block was opened and is not closed yet. */
  isOpen(index: unknown): boolean {
    return typeof index === "number" && this.openBlocks.has(index);
  }

  observe(event: MessagesEvent): void {
    switch (event.type) {
      case "message_start":
        this.started = true;
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
          this.finishReason ??= this.fitting(event.delta.stop_reason);
        break;
    }
  }

  /**
   * Whether there is content, or an end without any that is meaningful to the client: cut by its
   * own limit, or refused.
   */
  get isAcceptable(): boolean {
    return (
      this.outputCharacters > 0 || (this.finishReason !== null && !isQuietEnd(this.finishReason))
    );
  }

  /** Returns the stop reason that fits the content so far. */
  fitting(reason: string | null): string {
    return fittingEnd(reason, this.calledTools);
  }

  /** Returns the provider's usage, or an estimate from what was delivered. */
  metered(): MeteredUsage {
    const reported = this.tally.metered();
    const isWhole = reported === undefined || reported.usage.inputTokens !== undefined;
    return boundOrEstimated(
      isWhole
        ? reported
        : {
            ...reported,
            usage: { ...reported.usage, inputTokens: this.inputTokens },
            estimated: true,
          },
      this,
    );
  }

  private observeBlock({ type, name, text }: NonNullable<MessagesEvent["content_block"]>): void {
    if (type === "tool_use") this.calledTools = true;
    if (type === "text") this.say(typeof text === "string" ? text.length : 0);
    else if (type !== "thinking") this.say(1 + (typeof name === "string" ? name.length : 0));
  }

  /** Notes content that the client was sent. */
  say(characters: number): void {
    this.outputCharacters += characters;
    this.tally.said(characters);
  }
}

/** Returns the characters of a delta. Hidden reasoning comes as its seal alone. */
const charactersOf = (delta: JsonObject): number =>
  delta.type === "signature_delta" ? 1 : deltaLength(delta);

import type { GatewayError } from "../../../platform/kernel/errors.ts";
import {
  coveringDelivered,
  type ReasoningDelta,
  type StreamPart,
  type TextDelta,
  type MeteredUsage,
  type FinishReason,
  type CanonicalResponse,
} from "../../canonical/response.ts";
import type { Loss } from "../../canonical/request.ts";
import type { AnswerLosses } from "../../dialects/shared/encode-state.ts";
import type { StreamDecoder, StreamEncoder } from "../../dialects/dialect.ts";
import { reportError } from "../../dialects/errors.ts";
import type { SseEvent } from "../../upstream/sse-decoder.ts";
import {
  boundOrEstimated,
  type RelayOptions,
  type StreamRelay,
  emptyStream,
  type EventText,
  malformedStream,
  reportedFault,
  type StreamFault,
} from "../../dialects/shared/passthrough.ts";
import { AlikeTexts } from "../../dialects/shared/alike-texts.ts";
import { asGatewayFacts } from "../../dialects/shared/gateway-facts.ts";
import type { AssistantPart, Message } from "../../canonical/message.ts";
import type { Provenance } from "../../canonical/reasoning.ts";
import type { WorkspaceSignatures } from "./call-signatures.ts";
import type { LateSeals } from "./late-seals.ts";

type TextPart = TextDelta | ReasoningDelta;

/** Returns the piece of text that is all that an event says; undefined where it says more. */
function textAlone([part, ...more]: readonly StreamPart[]): TextPart | undefined {
  const isText = part?.type === "text-delta" || part?.type === "reasoning-delta";
  return isText && more.length === 0 ? part : undefined;
}

const isSamePlace = (one: TextPart, other: TextPart): boolean =>
  one.type === other.type &&
  one.choiceIndex === other.choiceIndex &&
  one.itemIndex === other.itemIndex &&
  summaryOf(one) === summaryOf(other);

const summaryOf = (part: TextPart): number | undefined =>
  part.type === "reasoning-delta" ? part.summaryIndex : undefined;

/** Returns a part with another text, which is given in JSON as well. */
function withText(part: TextPart, { text, json }: { text: string; json: string }): TextPart {
  if (part.type === "reasoning-delta") return { ...part, text };
  const { type, choiceIndex, itemIndex } = part;
  return json.includes("\\")
    ? { type, choiceIndex, itemIndex, text }
    : { type, choiceIndex, itemIndex, text, json };
}

/** Options of a relay between two dialects. */
interface TranslatedRelayOptions extends RelayOptions {
  decoder: StreamDecoder;
  encoder: StreamEncoder;
  answerLosses: AnswerLosses;
  pingFrame: string;
  traceId: string;
  signatures: WorkspaceSignatures;
  /** Keeps the reasoning that the client is not sent; absent where it is sent all. */
  lateSeals: LateSeals | undefined;
  nowSeconds(): number;
}

/**
 * Relays a stream between two dialects: each event becomes canonical parts, and each part the
 * client's frames, at once. The usage waits for the charge, since the client is sent both together.
 */
export class TranslatedRelay implements StreamRelay {
  ended = false;
  upstreamId: string | null = null;
  readonly pingFrame: string;
  private readonly options: TranslatedRelayOptions;
  private readonly meter = new SpokenMeter();
  private readonly alike = new AlikeTexts<TextPart>(isSamePlace);
  private usage: MeteredUsage | undefined;

  constructor(options: TranslatedRelayOptions) {
    this.options = options;
    this.pingFrame = options.pingFrame;
  }

  get hasContent(): boolean {
    return this.meter.hasContent;
  }

  get finished(): boolean {
    return this.meter.finished || this.options.decoder.isComplete === true;
  }

  get finishReason(): string | null {
    return this.meter.finishReason;
  }

  get losses(): readonly Loss[] {
    return this.options.answerLosses.list;
  }

  metered(): MeteredUsage {
    const { inputTokens, windowTokens, decoder } = this.options;
    const { finished, outputCharacters } = this.meter;
    const usage = this.usage ?? decoder.latestUsage;
    return boundOrEstimated(
      usage === undefined || finished ? usage : coveringDelivered(usage, outputCharacters),
      { inputTokens, windowTokens, outputCharacters },
    );
  }

  acceptAlike(events: EventText): string {
    const { alike } = this;
    const { decoder } = this.options;
    if (decoder.skip === undefined) return "";
    let frames = "";
    for (let taken = alike.take(events); taken !== undefined; taken = alike.take(events)) {
      const part = withText(taken.said, taken);
      decoder.skip(part);
      frames += this.framesOf(part);
    }
    alike.mark(events);
    return frames;
  }

  accept(event: SseEvent): string | Promise<string> {
    const parts = this.options.decoder.decode(event);
    this.alike.learn(textAlone(parts));
    return this.relay(parts);
  }

  finish(): Promise<string> {
    return Promise.resolve(this.relay(this.options.decoder.end()));
  }

  get outputCharacters(): number {
    return this.meter.outputCharacters;
  }

  endAtCap(): Promise<string> {
    let frames = "";
    for (const choiceIndex of this.meter.unfinished()) {
      const part: StreamPart = { type: "finish", choiceIndex, finish: { reason: "length" } };
      this.meter.observe(part);
      frames += this.options.encoder.encode(part).join("");
    }
    return this.close(frames);
  }

  fail(error: GatewayError): string {
    this.ended = true;
    const told = reportError(error, { traceId: this.options.traceId });
    return this.options.encoder.encode({ type: "error", error: told, fault: "reported" }).join("");
  }

  private relay(parts: readonly StreamPart[]): string | Promise<string> {
    let frames = "";
    for (const part of parts) {
      if (part.type === "usage") {
        this.usage = part.usage;
      } else if (part.type === "response-end") {
        return this.close(frames);
      } else if (part.type === "error") {
        throw this.faultOf(part);
      } else {
        frames += this.framesOf(part);
      }
    }
    return frames;
  }

  private framesOf(part: StreamPart): string {
    this.observe(part);
    const frames = this.options.encoder.encode(this.dated(part));
    return frames.length === 1 ? (frames[0] ?? "") : frames.join("");
  }

  /** Returns the start with a creation time, which Messages and the Gemini API do not report. */
  private dated(part: StreamPart): StreamPart {
    if (part.type !== "response-start" || part.createdAtSeconds > 0) return part;
    return { ...part, createdAtSeconds: this.options.nowSeconds() };
  }

  private observe(part: StreamPart): void {
    this.meter.observe(part);
    this.options.answerLosses.observe(part);
    this.options.lateSeals?.observe(part);
    if (part.type === "tool-call-start") keepSignature(part, this.options.signatures);
    if (part.type === "response-start" && part.id !== "") this.upstreamId ??= part.id;
  }

  private faultOf({ error, fault }: Extract<StreamPart, { type: "error" }>): StreamFault {
    if (fault === "reported") {
      const consumed =
        error.generated === true ? (this.usage ?? this.options.decoder.latestUsage) : undefined;
      return reportedFault(error, consumed);
    }
    if (!this.meter.hasContent && fault === "cut") return emptyStream();
    const observation =
      fault === "cut"
        ? "the stream ended before the answer was finished"
        : "an event of the stream is not valid JSON";
    return malformedStream(observation);
  }

  private keepLateSeals(): void {
    const { lateSeals, answerLosses } = this.options;
    if (lateSeals?.keep() === true) answerLosses.lose("reasoning", lateReason);
  }

  /**
   * Ends the stream. An end without content is the provider's failure, and nothing is charged for
   * it.
   */
  private async close(before: string): Promise<string> {
    const { encoder, settle, metadataText, fallback } = this.options;
    if (!this.meter.isAcceptable && !this.meter.hasContent) throw emptyStream();
    this.keepLateSeals();
    const { chargedNano, isByok } = await settle();
    const metered = this.metered();
    const gateway = asGatewayFacts({
      chargedNano,
      isByok,
      metered,
      fallback,
      metadataText: metadataText(),
    });
    const last = [
      ...encoder.encode({ type: "usage", usage: metered }),
      ...encoder.encode({ type: "response-end", gateway }),
    ];
    this.ended = true;
    return before + last.join("");
  }
}

const lateReason = "it came after the text, which is last in answers of this dialect";

/**
 * Counts what a translated answer contains: for estimates where no usage is reported, and to tell
 * an answer from silence.
 */
export class SpokenMeter {
  /** Characters of text, calls, refusals and the like. */
  visibleCharacters = 0;
  /** Characters of reasoning. */
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

  /** Observes a whole answer as if its parts had come one by one. */
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

/** Keeps the signature of a tool call, where it has one. */
export function keepSignature(
  call: { id: string; signature?: string; provenance?: Provenance },
  signatures: WorkspaceSignatures,
): void {
  const { id, signature, provenance } = call;
  if (signature !== undefined)
    signatures.keep(id, { signature, ...(provenance !== undefined && { provenance }) });
}

/**
 * Returns the conversation with the kept signatures on those calls that came back without theirs.
 */
export function withSignatures(
  messages: readonly Message[],
  signatures: WorkspaceSignatures,
): readonly Message[] {
  let changed = false;
  const signed = messages.map((message) => {
    if (message.role !== "assistant") return message;
    const parts = message.parts.map((part) => {
      const known =
        part.type === "tool-call" && part.signature === undefined
          ? signatures.find(part.id)
          : undefined;
      if (known === undefined) return part;
      changed = true;
      return { ...part, ...known };
    });
    return { ...message, parts };
  });
  return changed ? signed : messages;
}

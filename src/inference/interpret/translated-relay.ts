import type { GatewayError } from "../../platform/lib/errors.ts";
import type { StreamPart } from "../canonical/stream-part.ts";
import { coveringDelivered, estimateUsage, type MeteredUsage } from "../canonical/usage.ts";
import type { Loss } from "../canonical/loss.ts";
import type { AnswerLosses } from "../dialects/answer-losses.ts";
import type { StreamDecoder, StreamEncoder } from "../dialects/dialect.ts";
import { reportError } from "../dialects/report-error.ts";
import { emptyAnswer, malformedAnswer } from "../upstream/classify-failure.ts";
import type { SseEvent } from "../upstream/sse-event.ts";
import { boundUsage } from "./bound-usage.ts";
import { keepSignature, type WorkspaceSignatures } from "./call-signatures.ts";
import { asGatewayFacts } from "./gateway-facts.ts";
import type { RelayOptions, StreamRelay } from "./interpretation.ts";
import { SpokenMeter } from "./spoken-meter.ts";
import { reportedFault, StreamFault } from "./stream-fault.ts";

/** What a relay between two dialects is made of. */
export interface TranslatedRelayOptions extends RelayOptions {
  decoder: StreamDecoder;
  encoder: StreamEncoder;
  answerLosses: AnswerLosses;
  pingFrame: string;
  traceId: string;
  signatures: WorkspaceSignatures;
  nowSeconds(): number;
}

/**
 * Relays a stream between two dialects: each event becomes canonical parts, each part the client's
 * frames, at once. The usage waits for the charge, since the client sees both together.
 */
export class TranslatedRelay implements StreamRelay {
  ended = false;
  upstreamId: string | null = null;
  readonly pingFrame: string;
  private readonly options: TranslatedRelayOptions;
  private readonly meter = new SpokenMeter();
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
    const usage = this.usage ?? decoder.latestUsage;
    if (usage !== undefined) {
      return boundUsage(
        this.meter.finished ? usage : coveringDelivered(usage, this.meter.outputCharacters),
        windowTokens,
      );
    }
    return estimateUsage({
      inputCharacters: inputTokens * 4,
      outputCharacters: this.meter.outputCharacters,
    });
  }

  accept(event: SseEvent): string | Promise<string> {
    return this.relay(this.options.decoder.decode(event));
  }

  finish(): string | Promise<string> {
    return this.relay(this.options.decoder.end());
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
        this.observe(part);
        const added = this.options.encoder.encode(this.dated(part));
        for (let index = 0; index < added.length; index += 1) frames += added[index];
      }
    }
    return frames;
  }

  /** The start with a time, which Messages and the Gemini API do not tell. */
  private dated(part: StreamPart): StreamPart {
    if (part.type !== "response-start" || part.createdAtSeconds > 0) return part;
    return { ...part, createdAtSeconds: this.options.nowSeconds() };
  }

  private observe(part: StreamPart): void {
    this.meter.observe(part);
    this.options.answerLosses.observe(part);
    if (part.type === "tool-call-start") keepSignature(part, this.options.signatures);
    if (part.type === "response-start" && part.id !== "") this.upstreamId ??= part.id;
  }

  private faultOf({ error, fault }: Extract<StreamPart, { type: "error" }>): StreamFault {
    if (fault === "reported") {
      const consumed =
        error.generated === true ? (this.usage ?? this.options.decoder.latestUsage) : undefined;
      return reportedFault(error, consumed);
    }
    if (!this.meter.hasContent && fault === "cut")
      return new StreamFault(emptyAnswer(this.options.status));
    const observation =
      fault === "cut"
        ? "the stream ended before the answer was finished"
        : "an event of the stream is not valid JSON";
    return new StreamFault(malformedAnswer(this.options.status, observation));
  }

  /** An end without content is the provider's failure, and nothing is charged for it. */
  private async close(before: string): Promise<string> {
    const { encoder, settle, metadataText, fallback, status } = this.options;
    if (!this.meter.isAcceptable && !this.meter.hasContent)
      throw new StreamFault(emptyAnswer(status));
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

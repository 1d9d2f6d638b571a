import { AnswerMeter, boundOrEstimated } from "../../../canonical/answer-meter.ts";
import {
  coveringDelivered,
  type MeteredUsage,
  spokenText,
  type SpokenPart,
  type StreamPart,
} from "../../../canonical/response.ts";
import type { SkippedTexts, StreamDecoder } from "./stream-decoder.ts";
import {
  emptyStream,
  malformedStream,
  reportedFault,
  type StreamFault,
  unfinishedStream,
} from "./stream-fault.ts";
import type { SseEvent } from "./stream-relay.ts";

/** The estimated tokens of the input, and the model's context window. */
interface ExpectedTokens {
  inputTokens: number;
  windowTokens: number;
}

interface ReaderOptions extends ExpectedTokens {
  /** See `UpstreamDialect.hidesReasoning`. */
  hidesReasoning?: boolean | undefined;
}

/**
 * Reads the stream of one upstream to canonical parts, and knows what has come of it: text, usage
 * and how it finished. Clients of the same dialect and of others are charged by this alone.
 */
export class AnswerReader {
  readonly meter: AnswerMeter;
  private readonly expected: ExpectedTokens;
  private usage: MeteredUsage | undefined;
  private startId: string | undefined;

  constructor(
    private readonly decoder: StreamDecoder,
    { inputTokens, windowTokens, hidesReasoning }: ReaderOptions,
  ) {
    this.meter = new AnswerMeter(hidesReasoning);
    this.expected = { inputTokens, windowTokens };
  }

  /** Returns the parts of an event. Throws `StreamFault` for a failure of the upstream. */
  read(event: SseEvent): readonly StreamPart[] {
    return this.observeAll(this.decoder.decode(event));
  }

  /** Returns the parts that end the stream. Throws `StreamFault` where it was cut. */
  readEnd(): readonly StreamPart[] {
    return this.observeAll(this.decoder.end());
  }

  /** Whether texts of similar events may be noted without decoding them. */
  get canSkip(): boolean {
    return this.decoder.skip !== undefined;
  }

  /** Whether the same holds for arguments of calls. */
  get canSkipCalls(): boolean {
    return this.decoder.skipsCalls === true;
  }

  /** Whether texts that are not decoded have to be noted, and not only counted. */
  get keepsTexts(): boolean {
    return this.decoder.keepsTexts === true;
  }

  /** Whether a draft of a picture has come, which clients of the same dialect alone are sent. */
  get hasDraft(): boolean {
    return this.decoder.hasDraft === true;
  }

  /** Notes the text of an event that is similar to the latest decoded one. */
  skip(part: SpokenPart): void {
    const text = spokenText(part);
    this.decoder.skip?.(part, { text, characters: text.length, count: 1 });
    this.meter.observe(part);
  }

  /** Notes the texts of several such events. */
  skipRun(like: SpokenPart, texts: SkippedTexts): void {
    this.decoder.skip?.(like, texts);
    this.meter.observeText(like, texts.characters);
  }

  /** Counts parts that the gateway adds. */
  observeAll(parts: readonly StreamPart[]): readonly StreamPart[] {
    for (const part of parts) this.observe(part);
    return parts;
  }

  /** The upstream's id of the answer; null while it has sent none. */
  get upstreamId(): string | null {
    return this.startId ?? this.decoder.answerId ?? null;
  }

  /** Whether every choice has finished, so that only the upstream's own end is awaited. */
  get finished(): boolean {
    return this.meter.finished || this.decoder.isComplete === true;
  }

  /** The usage that the upstream reported; undefined while it has reported none. */
  get reported(): MeteredUsage | undefined {
    return this.usage ?? this.decoder.latestUsage;
  }

  /** Returns the provider's usage, or an estimate from what has come. */
  metered(): MeteredUsage {
    const { reported, expected } = this;
    const { finished, outputCharacters } = this.meter;
    return boundOrEstimated(
      reported === undefined || finished ? reported : coveringDelivered(reported, outputCharacters),
      { ...expected, outputCharacters },
    );
  }

  /**
   * Throws for an end without content, which is the provider's failure, and nothing is charged for
   * it.
   */
  assertContent(): void {
    if (!this.meter.isAcceptable && !this.meter.hasContent) throw emptyStream();
  }

  private observe(part: StreamPart): void {
    if (part.type === "error") throw this.faultOf(part);
    if (part.type === "usage") this.usage = part.usage;
    else if (part.type === "response-start" && part.id !== "") this.startId ??= part.id;
    this.meter.observe(part);
  }

  private faultOf({ error, fault }: Extract<StreamPart, { type: "error" }>): StreamFault {
    if (fault === "reported")
      return reportedFault(error, error.generated === true ? this.reported : undefined);
    if (!this.meter.hasContent && fault === "cut") return emptyStream();
    return fault === "cut"
      ? unfinishedStream()
      : malformedStream("an event of the stream is not valid JSON");
  }
}

import { AnswerMeter } from "../../../canonical/answer-meter.ts";
import {
  coveringDelivered,
  type MeteredUsage,
  type ReasoningDelta,
  type StreamPart,
  type TextDelta,
} from "../../../canonical/response.ts";
import type { StreamDecoder } from "../../dialect.ts";
import {
  boundOrEstimated,
  emptyStream,
  malformedStream,
  reportedFault,
  type SseEvent,
  type StreamFault,
} from "../passthrough.ts";

/** The estimated tokens of the input, and the model's context window. */
interface ExpectedTokens {
  inputTokens: number;
  windowTokens: number;
}

/**
 * Reads the stream of one upstream to canonical parts, and knows what has come of it: text, usage
 * and how it finished. Clients of the same dialect and of others are charged by this alone.
 */
export class AnswerReader {
  readonly meter = new AnswerMeter();
  /** The upstream's id of the answer; null while it has sent none. */
  upstreamId: string | null = null;
  private readonly decoder: StreamDecoder;
  private readonly expected: ExpectedTokens;
  private usage: MeteredUsage | undefined;

  constructor(decoder: StreamDecoder, { inputTokens, windowTokens }: ExpectedTokens) {
    this.decoder = decoder;
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

  /** Notes the text of an event that is similar to the latest decoded one. */
  skip(part: TextDelta | ReasoningDelta): void {
    this.decoder.skip?.(part);
    this.meter.observe(part);
  }

  /**
   * Notes the characters of texts like this one, for an upstream of whose texts the decoder keeps
   * nothing.
   */
  skipRun(like: TextDelta | ReasoningDelta, characters: number): void {
    this.meter.observeText(like, characters);
  }

  /** Counts parts that the gateway adds. */
  observeAll(parts: readonly StreamPart[]): readonly StreamPart[] {
    for (const part of parts) this.observe(part);
    return parts;
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
    else if (part.type === "response-start" && part.id !== "") this.upstreamId ??= part.id;
    this.meter.observe(part);
  }

  private faultOf({ error, fault }: Extract<StreamPart, { type: "error" }>): StreamFault {
    if (fault === "reported")
      return reportedFault(error, error.generated === true ? this.reported : undefined);
    if (!this.meter.hasContent && fault === "cut") return emptyStream();
    const observation =
      fault === "cut"
        ? "the stream ended before the answer was finished"
        : "an event of the stream is not valid JSON";
    return malformedStream(observation);
  }
}

import type { MeteredUsage, SpokenPart, StreamPart } from "../../../canonical/response.ts";

/** Texts of consecutive events that are not decoded. */
export interface SkippedTexts {
  /** The number of events, and the characters of their texts. */
  count: number;
  characters: number;
  /** The texts themselves, one after another; empty for a decoder that keeps none. */
  text: string;
}

/** Decodes one upstream's events to canonical stream parts; one decoder serves one stream. */
export interface StreamDecoder {
  decode(event: { event?: string; data: string }): StreamPart[];
  /**
   * Notes texts of events that are not decoded, because they differ from the latest decoded event,
   * which said `like`, only in these texts. Absent means that every event has to be decoded.
   */
  skip?(like: SpokenPart, texts: SkippedTexts): void;
  /** Whether `skip` takes arguments of calls too, and whether it needs the texts themselves. */
  readonly skipsCalls?: boolean;
  readonly keepsTexts?: true;
  /** Whether a draft of a picture has come, which no part has; absent where there are none. */
  readonly hasDraft?: boolean;
  /** Ends the stream: closes what is complete, and returns an error for what was cut. */
  end(): StreamPart[];
  /** Whether every choice has ended without a `finish`; absent for dialects with an end event. */
  readonly isComplete?: boolean;
  /** The upstream's id of the answer where it may come after the start; absent for others. */
  readonly answerId?: string | undefined;
  /** The latest usage that the upstream reported, for a stream that is abandoned before its end. */
  readonly latestUsage: MeteredUsage | undefined;
}

import type { GatewayError } from "../../../../platform/kernel/errors.ts";
import type { Loss } from "../../../canonical/request.ts";
import type {
  MeteredUsage,
  ReasoningDelta,
  StreamPart,
  TextDelta,
} from "../../../canonical/response.ts";
import type { EventText, SseEvent, StreamRelay } from "../passthrough.ts";
import { AlikeTexts, type ShownEvent } from "./alike-texts.ts";
import type { AnswerReader } from "./answer-reader.ts";

type TextPart = TextDelta | ReasoningDelta;

/**
 * Writes one stream for its client: keeps the upstream's bytes with declared touch-ups, or writes
 * another dialect.
 */
export interface StreamWriter {
  /** The frame that is sent while the upstream is silent; never within an event. */
  readonly pingFrame: string;
  /** The finish reason as the upstream wrote it; absent where the canonical one is recorded. */
  readonly finishReason?: string | null;
  /** What the client's dialect could not carry so far; absent where the bytes are kept. */
  readonly losses?: readonly Loss[];
  /**
   * Returns the frames of an event, which was read as these parts; without an event those of parts
   * that no event carried. Returns a promise only for the event with the charge.
   */
  write(parts: readonly StreamPart[], event?: SseEvent): string | Promise<string>;
  /** Returns the frames of a text that was not decoded; absent where bytes are kept. */
  writeText?(part: TextPart): string;
  /**
   * Returns what the client was sent of the latest event, from which similar ones are written;
   * undefined where that cannot be said. Absent where each text is written again.
   */
  latestShown?(): ShownEvent | undefined;
  /** Charges, and returns the frames that end a complete stream. */
  end(): Promise<string>;
  /** Returns the frames that end a stream with an error. */
  fail(error: GatewayError): string;
}

/**
 * Relays one stream from its reader to its writer, at once. A stream that was cut never looks
 * complete.
 */
export class Relay implements StreamRelay {
  ended = false;
  private readonly reader: AnswerReader;
  private readonly writer: StreamWriter;
  private readonly alike = new AlikeTexts<TextPart>(isSamePlace);

  constructor(reader: AnswerReader, writer: StreamWriter) {
    this.reader = reader;
    this.writer = writer;
  }

  get pingFrame(): string {
    return this.writer.pingFrame;
  }

  get hasContent(): boolean {
    return this.reader.meter.hasContent;
  }

  get outputCharacters(): number {
    return this.reader.meter.outputCharacters;
  }

  get finished(): boolean {
    return this.reader.finished;
  }

  get finishReason(): string | null {
    return this.writer.finishReason ?? this.reader.meter.finishReason;
  }

  get upstreamId(): string | null {
    return this.reader.upstreamId;
  }

  get losses(): readonly Loss[] {
    return this.writer.losses ?? [];
  }

  metered(): MeteredUsage {
    return this.reader.metered();
  }

  acceptAlike(events: EventText): string {
    const { alike, reader, writer } = this;
    if (!reader.canSkip) return "";
    let frames = "";
    if (writer.writeText === undefined) {
      const run = alike.takeRun(events);
      if (run !== undefined) reader.skipRun(run.said, run.characters);
      frames = run?.frames ?? "";
    } else
      for (let taken = alike.take(events); taken !== undefined; taken = alike.take(events)) {
        const part = withText(taken.said, taken);
        reader.skip(part);
        frames += writer.writeText(part);
      }
    alike.mark(events);
    return frames;
  }

  accept(event: SseEvent): string | Promise<string> {
    const parts = this.reader.read(event);
    const frames = this.writer.write(parts, event);
    this.learn(parts);
    return isEnd(parts) ? this.close(frames) : frames;
  }

  finish(): Promise<string> {
    const parts = this.reader.readEnd();
    const frames = this.writer.write(parts);
    return isEnd(parts) ? this.close(frames) : Promise.resolve(frames);
  }

  endAtCap(): Promise<string> {
    const cut = this.reader.meter.unfinished().map(
      (choiceIndex): StreamPart => ({
        type: "finish",
        choiceIndex,
        finish: { reason: "length" },
      }),
    );
    return this.close(this.writer.write(this.reader.observeAll(cut)));
  }

  fail(error: GatewayError): string {
    this.ended = true;
    return this.writer.fail(error);
  }

  private learn(parts: readonly StreamPart[]): void {
    const { alike, writer } = this;
    if (writer.latestShown === undefined) {
      alike.learn(textAlone(parts));
      return;
    }
    const shown = writer.latestShown();
    alike.learn(shown && textAlone(parts), shown);
  }

  private async close(before: string | Promise<string>): Promise<string> {
    this.reader.assertContent();
    const frames = typeof before === "string" ? before : await before;
    const last = await this.writer.end();
    this.ended = true;
    return frames + last;
  }
}

const isEnd = (parts: readonly StreamPart[]): boolean => parts.at(-1)?.type === "response-end";

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

import type { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Loss } from "../../canonical/request.ts";
import type { MeteredUsage, SpokenPart, StreamPart } from "../../canonical/response.ts";
import type {
  CountedTexts,
  EventText,
  SseEvent,
  StreamRelay,
} from "../../dialects/shared/stream/stream-relay.ts";
import type { AnswerReader } from "../../dialects/shared/stream/answer-reader.ts";
import type { StreamWriter } from "../../dialects/shared/stream/stream-writer.ts";
import { AlikeTexts, type RunSearch } from "./alike-texts.ts";
import { BytesAside, longCharacters } from "./bytes-aside.ts";

/** A piece of text that an event says, and its part. */
interface Said {
  text: string;
  part: SpokenPart;
}

/**
 * Relays one stream from its reader to its writer, at once. A stream that was cut never looks
 * complete.
 */
export class Relay implements StreamRelay {
  ended = false;
  private readonly alike = new AlikeTexts<Said>(isSamePlace);
  private readonly search: RunSearch;
  /** The base64 of the stream's pictures and sound; absent where its bytes are not kept. */
  readonly aside: BytesAside | undefined;

  constructor(
    private readonly reader: AnswerReader,
    private readonly writer: StreamWriter,
  ) {
    this.search = { keepsText: reader.keepsTexts };
    this.aside = writer.writeText === undefined ? new BytesAside() : undefined;
  }

  get pingFrame(): string {
    return this.writer.pingFrame;
  }

  get hasContent(): boolean {
    const { reader, aside } = this;
    return reader.meter.hasContent || (aside !== undefined && reader.hasDraft);
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

  acceptAlike(events: EventText, texts?: CountedTexts): string {
    const { alike, reader, writer, search } = this;
    if (!reader.canSkip) return "";
    let frames = "";
    if (writer.writeText === undefined) {
      search.number = writer.nextNumber;
      search.keepsText = reader.keepsTexts || texts !== undefined;
      search.charactersMax = texts?.charactersMax;
      const run = alike.takeRun(events, search);
      if (run !== undefined) {
        texts?.note(run.text, { isThought: isThought(run.said) });
        reader.skipRun(run.said.part, run);
        writer.noteRun?.(run);
        frames = run.frames;
      }
    } else
      for (;;) {
        const taken = alike.take(events, texts?.charactersMax);
        if (taken === undefined) break;
        const part = withText(taken.said.part, taken);
        texts?.note(taken.text, { isThought: isThought(taken.said) });
        reader.skip(part);
        frames += writer.writeText(part);
      }
    alike.mark(events);
    return frames;
  }

  accept(event: SseEvent): string | Promise<string> {
    const { aside } = this;
    if (aside !== undefined && (event.data.length >= longCharacters || !aside.isEmpty))
      return this.acceptLong(event, aside);
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

  /** Accepts an event without the base64 in it, which is put back when its frames are sent. */
  private acceptLong(came: SseEvent, aside: BytesAside): string | Promise<string> {
    const { event, isLighter } = aside.take(came);
    const parts = this.reader.read(event);
    const frames = this.writer.write(parts, event);
    if (isLighter && this.writer.repeatsLatest === true) aside.keep(event);
    if (isLighter) this.alike.learn(undefined);
    else this.learn(parts);
    return isEnd(parts) ? this.close(frames) : frames;
  }

  private learn(parts: readonly StreamPart[]): void {
    const { alike, writer } = this;
    if (writer.latestShown === undefined) {
      alike.learn(textAlone(parts, this.reader));
      return;
    }
    const shown = writer.latestShown();
    alike.learn(shown && textAlone(parts, this.reader), shown);
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
function textAlone(
  [part, ...more]: readonly StreamPart[],
  { canSkipCalls }: AnswerReader,
): Said | undefined {
  if (part === undefined || more.length > 0) return undefined;
  if (part.type === "text-delta" || part.type === "reasoning-delta")
    return { text: part.text, part };
  return part.type === "tool-call-delta" && canSkipCalls
    ? { text: part.arguments, part }
    : undefined;
}

const isThought = ({ part }: Said): boolean => part.type === "reasoning-delta";

const isSamePlace = ({ part: one }: Said, { part: other }: Said): boolean =>
  one.type === other.type &&
  one.choiceIndex === other.choiceIndex &&
  one.itemIndex === other.itemIndex &&
  summaryOf(one) === summaryOf(other);

const summaryOf = (part: SpokenPart): number | undefined =>
  part.type === "reasoning-delta" ? part.summaryIndex : undefined;

/** Returns a part with another text, which is given in JSON as well. */
function withText(part: SpokenPart, { text, json }: { text: string; json: string }): SpokenPart {
  if (part.type === "reasoning-delta") return { ...part, text };
  if (part.type === "tool-call-delta") return { ...part, arguments: text };
  const { type, choiceIndex, itemIndex } = part;
  return json.includes("\\")
    ? { type, choiceIndex, itemIndex, text }
    : { type, choiceIndex, itemIndex, text, json };
}

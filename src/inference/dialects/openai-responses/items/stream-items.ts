import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import type { ItemPlace, SpokenPart, StreamPart } from "../../../canonical/response.ts";
import type { DecodeContext } from "../../dialect.ts";
import { decodeTokens } from "../../shared/openai-fields.ts";
import { asArray, asNumber, asObject, asPlace, asString } from "../../shared/wire-fields.ts";
import { unwrapInput } from "../../shared/tools.ts";
import { decodeAnnotation } from "../answer-fields.ts";
import { callFacts, decodeThought, mintedCallId } from "../decode-response.ts";

/** An item of an upstream's stream, from its first event to its last. */
export interface ItemStream {
  /** Reads an event of the item other than its beginning and its end. */
  read(type: string, event: JsonObject): StreamPart[];
  /** Notes texts of events that are not read, but else equal to the latest one of the item. */
  skip?(like: SpokenPart, text: string): void;
  /** Returns the item as it began, with what has come of it; absent where nothing can. */
  filled?(item: JsonObject): JsonObject;
  /** Ends the item, and returns what no event has reported. */
  done(item: JsonObject): StreamPart[];
  /** Ends what is open, because something else begins or the answer has ended. */
  close(): StreamPart[];
}

/** The state of the stream around an item. */
export interface StreamSurroundings {
  context: DecodeContext;
  /** The position of the item in the upstream's output. */
  outputIndex: number;
  nextPlace(): ItemPlace;
  /** Returns whether a message preceded it. */
  startsMessage(): boolean;
  messageBegan(): void;
  callBegan(): void;
  responseId(): string;
}

/**
 * Returns what a whole text adds to what came of it; nothing when the two disagree, since what was
 * sent cannot be revised.
 */
function suffixOf(whole: string | undefined, received: string): string {
  if (whole === undefined || !whole.startsWith(received)) return "";
  return whole.slice(received.length);
}

/** Returns the parts of an item as they began, with the texts that have come, in their order. */
function filledParts(
  began: JsonValue | undefined,
  texts: readonly { empty: JsonObject; field: string; text: string }[],
): JsonObject[] {
  const parts = (asArray(began) ?? []).map((part) => asObject(part) ?? {});
  texts.forEach(({ empty, field, text }, index) => {
    const part = parts[index] ?? empty;
    parts[index] = { ...part, [field]: (asString(part[field]) ?? "") + text };
  });
  return parts;
}

interface PartState {
  place: ItemPlace | undefined;
  isRefusal: boolean;
  /** The position of the part's citations, which may arrive after its end. */
  lastPlace: ItemPlace | undefined;
  text: string;
  annotationCount: number;
}

/** A message of an upstream's stream: texts and refusals by their content index. */
export class MessageStream implements ItemStream {
  private readonly phase: string | undefined;
  private hasBegun = false;
  private readonly parts = new Map<number, PartState>();
  /** The part that received the latest text. */
  private latest: PartState | undefined;

  constructor(
    item: JsonObject,
    private readonly surroundings: StreamSurroundings,
  ) {
    this.phase = asString(item.phase);
  }

  read(type: string, event: JsonObject): StreamPart[] {
    const index = asNumber(event.content_index) ?? 0;
    switch (type) {
      case "response.output_text.delta":
        return this.text(index, { text: asString(event.delta) ?? "", event });
      case "response.output_text.done":
        return [...this.rest(index, asString(event.text)), ...this.end(index)];
      case "response.output_text.annotation.added":
        return this.annotations(index, [event.annotation ?? null]);
      case "response.refusal.delta":
        return this.refusal(index, asString(event.delta) ?? "");
      case "response.refusal.done":
        return this.restOfRefusal(index, asString(event.refusal));
      case "response.content_part.done":
        return this.reconcile(index, asObject(event.part) ?? {});
      default:
        return [];
    }
  }

  skip(_like: SpokenPart, text: string): void {
    if (this.latest !== undefined) this.latest.text += text;
  }

  filled(item: JsonObject): JsonObject {
    const texts = [...this.parts]
      .sort(([one], [other]) => one - other)
      .map(([, { isRefusal, text }]) =>
        isRefusal
          ? { empty: { type: "refusal" }, field: "refusal", text }
          : { empty: emptyText, field: "text", text },
      );
    return texts.length === 0 ? item : { ...item, content: filledParts(item.content, texts) };
  }

  done(item: JsonObject): StreamPart[] {
    const whole = (asArray(item.content) ?? []).flatMap((part, index) =>
      this.reconcile(index, asObject(part) ?? {}),
    );
    return [...whole, ...this.close()];
  }

  close(): StreamPart[] {
    return [...this.parts.keys()].flatMap((index) => this.end(index));
  }

  /** Returns what a whole part contains beyond its deltas. */
  private reconcile(index: number, part: JsonObject): StreamPart[] {
    if (part.type === "refusal") return this.restOfRefusal(index, asString(part.refusal));
    const text = this.rest(index, asString(part.text));
    const sentCount = this.parts.get(index)?.annotationCount ?? 0;
    const annotations = this.annotations(index, (asArray(part.annotations) ?? []).slice(sentCount));
    return [...text, ...annotations, ...this.end(index)];
  }

  private part(index: number): PartState {
    let part = this.parts.get(index);
    if (part === undefined)
      this.parts.set(
        index,
        (part = {
          place: undefined,
          isRefusal: false,
          lastPlace: undefined,
          text: "",
          annotationCount: 0,
        }),
      );
    return part;
  }

  private rest(index: number, whole: string | undefined): StreamPart[] {
    return this.text(index, { text: suffixOf(whole, this.part(index).text), event: {} });
  }

  private text(index: number, { text, event }: { text: string; event: JsonObject }): StreamPart[] {
    if (text === "") return [];
    const part = this.part(index);
    part.text += text;
    this.latest = part;
    const parts = part.place === undefined ? this.start(part) : [];
    const tokens = decodeTokens(event.logprobs);
    if (tokens.length > 0) parts.push({ type: "logprobs", choiceIndex: 0, content: tokens });
    const { choiceIndex, itemIndex } = part.place ?? this.surroundings.nextPlace();
    parts.push({ type: "text-delta", choiceIndex, itemIndex, text });
    return parts;
  }

  private start(part: PartState): StreamPart[] {
    const others = this.close();
    const place = this.surroundings.nextPlace();
    part.place = place;
    part.lastPlace = place;
    const { phase } = this;
    const startsMessage = !this.hasBegun && this.surroundings.startsMessage();
    this.hasBegun = true;
    this.surroundings.messageBegan();
    return [
      ...others,
      {
        type: "text-start",
        ...place,
        ...(startsMessage && { startsMessage }),
        ...(phase !== undefined && { phase }),
      },
    ];
  }

  private end(index: number): StreamPart[] {
    const part = this.parts.get(index);
    if (part?.place === undefined) return [];
    const { place } = part;
    part.place = undefined;
    return [{ type: "text-end", ...place }];
  }

  private annotations(index: number, values: readonly unknown[]): StreamPart[] {
    const part = this.part(index);
    const place = part.lastPlace;
    // A citation without a part yet; the whole part will contain it again.
    if (place === undefined) return [];
    return values.flatMap((value): StreamPart[] => {
      const annotation = decodeAnnotation(asObject(value) ?? null);
      if (annotation === undefined) return [];
      part.annotationCount += 1;
      return [{ type: "annotation", ...place, annotation }];
    });
  }

  private restOfRefusal(index: number, whole: string | undefined): StreamPart[] {
    return this.refusal(index, suffixOf(whole, this.part(index).text));
  }

  private refusal(index: number, refusal: string): StreamPart[] {
    if (refusal === "") return [];
    const part = this.part(index);
    part.isRefusal = true;
    part.text += refusal;
    part.lastPlace ??= this.surroundings.nextPlace();
    this.surroundings.messageBegan();
    return [{ type: "refusal-delta", ...part.lastPlace, refusal }];
  }
}

/** A part of a message before it is filled. */
const emptyText: JsonObject = { type: "output_text", text: "", annotations: [], logprobs: [] };

/** A call of an upstream's stream, which is announced when its name is known. */
export class CallStream implements ItemStream {
  private place: ItemPlace | undefined;
  private ended = false;
  /** The text so far. */
  private text = "";
  /** The characters of it that were passed on. */
  private sentLength = 0;
  /**
   * Whether it is a custom tool that was sent as a function, whose input is known only when the
   * arguments are complete.
   */
  private unwraps = false;
  private accumulates: boolean | undefined;

  constructor(
    item: JsonObject,
    private readonly surroundings: StreamSurroundings,
  ) {
    this.text = textOf(item);
  }

  /** Announces a call that has its name from the start. */
  begin(item: JsonObject): StreamPart[] {
    return [...this.announce(item), ...this.tell()];
  }

  read(type: string, event: JsonObject): StreamPart[] {
    if (type.endsWith(".delta")) this.text += this.fresh(event);
    else if (type.endsWith(".done"))
      this.text += suffixOf(asString(event.arguments) ?? asString(event.input), this.text);
    return this.tell();
  }

  skip(_like: SpokenPart, text: string): void {
    this.text += text;
    this.sentLength = this.text.length;
  }

  filled(item: JsonObject): JsonObject {
    return { ...item, [textField(item)]: this.text };
  }

  done(item: JsonObject): StreamPart[] {
    this.text += suffixOf(textOf(item), this.text);
    return [...this.announce(item), ...this.tell(), ...this.close()];
  }

  close(): StreamPart[] {
    if (this.place === undefined || this.ended) return [];
    this.ended = true;
    const end: StreamPart = { type: "tool-call-end", ...this.place };
    return this.unwraps
      ? [{ type: "tool-call-delta", ...this.place, arguments: unwrapInput(this.text) }, end]
      : [end];
  }

  /**
   * Returns what a delta adds. Some servers repeat the call and all of its arguments in every
   * delta; the first repetition shows which kind of server it is.
   */
  private fresh(event: JsonObject): string {
    const delta = asString(event.delta) ?? "";
    const repeats = asString(event.name) !== undefined || asString(event.call_id) !== undefined;
    if (!repeats || this.text === "" || delta === "") return delta;
    this.accumulates ??= delta.startsWith(this.text);
    return this.accumulates ? suffixOf(delta, this.text) : delta;
  }

  private announce(item: JsonObject): StreamPart[] {
    const { context, nextPlace, responseId, outputIndex, callBegan } = this.surroundings;
    const { unwraps, ...facts } = callFacts(item, context);
    if (this.place !== undefined || facts.name === "") return [];
    this.place = nextPlace();
    this.unwraps = unwraps;
    callBegan();
    const id =
      asString(item.call_id) || asString(item.id) || mintedCallId(responseId(), outputIndex);
    return [{ type: "tool-call-start", ...this.place, ...facts, id }];
  }

  private tell(): StreamPart[] {
    if (
      this.place === undefined ||
      this.ended ||
      this.unwraps ||
      this.sentLength === this.text.length
    )
      return [];
    const fresh = this.text.slice(this.sentLength);
    this.sentLength = this.text.length;
    return [{ type: "tool-call-delta", ...this.place, arguments: fresh }];
  }
}

const textField = ({ type }: JsonObject): "input" | "arguments" =>
  type === "custom_tool_call" ? "input" : "arguments";

/** Returns arguments as text; a few servers send the object itself. */
function textOf(item: JsonObject): string {
  const value = item[textField(item)];
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

/** A reasoning block of an upstream's stream, which begins with its first content. */
export class ThoughtStream implements ItemStream {
  private id: string | undefined;
  private place: ItemPlace | undefined;
  private readonly received = new Map<string, string>();

  constructor(
    item: JsonObject,
    private readonly surroundings: StreamSurroundings,
  ) {
    this.id = asString(item.id) || undefined;
  }

  read(type: string, event: JsonObject): StreamPart[] {
    const summaryIndex = asPlace(event.summary_index);
    switch (type) {
      case "response.reasoning_summary_text.delta":
        return this.think(asString(event.delta) ?? "", summaryIndex);
      case "response.reasoning_summary_text.done":
        return this.rest(asString(event.text), summaryIndex);
      // Open Responses (2026-07) has a shorter name for the reasoning itself.
      case "response.reasoning_text.delta":
      case "response.reasoning.delta":
        return this.think(asString(event.delta) ?? "");
      case "response.reasoning_text.done":
      case "response.reasoning.done":
        return this.rest(asString(event.text));
      default:
        return [];
    }
  }

  skip(like: SpokenPart, text: string): void {
    if (like.type === "reasoning-delta") this.note(text, like.summaryIndex);
  }

  filled(item: JsonObject): JsonObject {
    const { [String(undefined)]: text, ...summaries } = Object.fromEntries(this.received);
    const summary = Object.entries(summaries)
      .sort(([one], [other]) => Number(one) - Number(other))
      .map(([, part]) => ({ empty: { type: "summary_text" }, field: "text", text: part }));
    const thought = { empty: { type: "reasoning_text" }, field: "text", text: text ?? "" };
    return {
      ...item,
      ...(summary.length > 0 && { summary: filledParts(item.summary, summary) }),
      ...(text !== undefined && { content: filledParts(item.content, [thought]) }),
    };
  }

  done(item: JsonObject): StreamPart[] {
    this.id ??= asString(item.id) || undefined;
    const texts = (value: unknown): string[] =>
      (asArray(value) ?? []).map((entry) => asString(asObject(entry)?.text) ?? "");
    const parts = [
      ...texts(item.summary).flatMap((text, index) => this.rest(text, index)),
      ...this.rest(texts(item.content).join("")),
    ];
    const { encrypted, signature, provenance } =
      decodeThought(item, this.surroundings.context) ?? {};
    const seals = {
      ...(encrypted !== undefined && { encrypted }),
      ...(signature !== undefined && { signature }),
      ...(provenance !== undefined && { provenance }),
    };
    const start = encrypted !== undefined || signature !== undefined ? this.start() : [];
    return [...parts, ...start, ...this.end(seals)];
  }

  close(): StreamPart[] {
    return this.end({});
  }

  private rest(whole: string | undefined, summaryIndex?: number): StreamPart[] {
    return this.think(suffixOf(whole, this.received.get(String(summaryIndex)) ?? ""), summaryIndex);
  }

  private note(text: string, summaryIndex: number | undefined): void {
    const key = String(summaryIndex);
    this.received.set(key, (this.received.get(key) ?? "") + text);
  }

  private think(text: string, summaryIndex?: number): StreamPart[] {
    if (text === "") return [];
    this.note(text, summaryIndex);
    const start = this.start();
    const place = this.place ?? this.surroundings.nextPlace();
    return [
      ...start,
      {
        type: "reasoning-delta",
        ...place,
        text,
        ...(summaryIndex !== undefined && { summaryIndex }),
      },
    ];
  }

  private start(): StreamPart[] {
    if (this.place !== undefined) return [];
    this.place = this.surroundings.nextPlace();
    return [
      { type: "reasoning-start", ...this.place, ...(this.id !== undefined && { id: this.id }) },
    ];
  }

  private end(seals: object): StreamPart[] {
    if (this.place === undefined) return [];
    const { place } = this;
    this.place = undefined;
    return [{ type: "reasoning-end", ...place, ...seals }];
  }
}

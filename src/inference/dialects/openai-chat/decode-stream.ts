import {
  reconcileFinish,
  type MeteredUsage,
  type ReportedError,
  type ErrorPart,
  type ItemPlace,
  type ReasoningEnd,
  type StreamPart,
} from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { DecodeContext } from "../dialect.ts";
import type { StreamDecoder } from "../shared/stream/stream-decoder.ts";
import {
  cutStream,
  looksLikeObject,
  malformedEvent,
  parseEventObject,
  textError,
  trimmed,
} from "../errors.ts";
import { asArray, asNumber, asObject, asPlace, asString } from "../shared/wire-fields.ts";
import {
  decodeAnnotation,
  decodeFinish,
  decodeLogProbabilities,
  hasFinished,
  type SealReader,
  sealsOf,
} from "./answer-fields.ts";
import { thinkingText } from "./messages/decode-messages.ts";
import { decodeImage, ToolCallStream } from "./decode-response.ts";
import { readStreamError } from "./errors.ts";
import { readUsageOf, withTier } from "./usage.ts";

/**
 * Decodes the chunks of a chat stream to canonical parts. Usage may come after the finish, on it,
 * on every chunk or never; it is emitted once, at the end. A stream that ends without `[DONE]` is
 * complete when every choice has finished, and an error otherwise.
 */
export class ChatStreamDecoder implements StreamDecoder {
  latestUsage: MeteredUsage | undefined;
  /** The latest event, for a writer that keeps its bytes; undefined where it was no chunk. */
  chunk: JsonObject | undefined;
  /** The latest service tier: not every server repeats it beside the usage. */
  private tier: string | undefined;
  private readonly choices = new Map<number, ChoiceStream>();
  private responseId = "";
  private started = false;
  private ended = false;

  constructor(private readonly context: DecodeContext = {}) {}

  decode(event: { event?: string; data: string }): StreamPart[] {
    this.chunk = undefined;
    if (this.ended) return [];
    const data = trimmed(event.data);
    if (data === "[DONE]") return this.finish();
    // Servers send comments and keep-alives as data too; a chunk is always an object, an error may
    // be in a list.
    if (!looksLikeObject(data)) return event.event === "error" ? this.fail(textError(data)) : [];
    const chunk = (this.chunk = parseEventObject(data));
    if (chunk === undefined)
      return this.fail(event.event === "error" ? textError(data) : malformedEvent);
    const error = readStreamError(
      event.event === "error" && chunk.error === undefined ? { error: chunk } : chunk,
    );
    return error === undefined ? this.readChunk(chunk) : this.readLastChunk(chunk, error);
  }

  skip(): void {
    // Text leaves nothing behind.
  }

  end(): StreamPart[] {
    if (this.ended) return [];
    const whole =
      this.choices.size > 0 && [...this.choices.values()].every((choice) => choice.finished);
    return whole ? this.finish() : this.fail(cutStream);
  }

  /** Reads a chunk with an error. Content in it still counts; an end in it does not. */
  private readLastChunk(chunk: JsonObject, error: ReportedError): StreamPart[] {
    const parts = this.readChunk(chunk).filter((part) => part.type !== "finish");
    return [...parts, ...this.fail({ type: "error", error, fault: "reported" })];
  }

  private readChunk(chunk: JsonObject): StreamPart[] {
    const usage = readUsageOf(chunk);
    this.tier = asString(chunk.service_tier) ?? this.tier;
    if (usage !== undefined)
      this.latestUsage = usage.levels === undefined ? withTier(usage, this.tier) : usage;
    const choices = asArray(chunk.choices) ?? [];
    if (choices.length === 0) return [];
    const parts = this.start(chunk);
    for (const value of choices) this.readChoice(value, parts);
    return parts;
  }

  private readChoice(value: JsonValue, parts: StreamPart[]): void {
    const fields = asObject(value);
    if (fields === undefined || this.ended) return;
    const index = choiceIndexOf(fields);
    let choice = this.choices.get(index);
    if (choice === undefined) {
      choice = new ChoiceStream(index, {
        responseId: () => this.responseId || (this.context.callSeed ?? ""),
        context: this.context,
      });
      this.choices.set(index, choice);
    }
    choice.read(fields, parts);
  }

  /**
   * Starts with the first chunk that has a choice; Azure's very first one has neither id nor
   * choices.
   */
  private start(chunk: JsonObject): StreamPart[] {
    if (this.started) return [];
    this.started = true;
    this.responseId = asString(chunk.id) ?? "";
    const serviceTier = asString(chunk.service_tier);
    const systemFingerprint = asString(chunk.system_fingerprint);
    return [
      {
        type: "response-start",
        id: this.responseId,
        model: asString(chunk.model) ?? "",
        createdAtSeconds: asNumber(chunk.created) ?? 0,
        ...(serviceTier !== undefined && { serviceTier }),
        ...(systemFingerprint !== undefined && { systemFingerprint }),
      },
    ];
  }

  private finish(): StreamPart[] {
    this.ended = true;
    const open = [...this.choices.values()].filter((choice) => !choice.finished);
    return [
      ...open.flatMap((choice) => choice.finish()),
      ...this.usageParts(),
      { type: "response-end" },
    ];
  }

  private fail(error: ErrorPart): StreamPart[] {
    this.ended = true;
    return [...this.usageParts(), error];
  }

  private usageParts(): StreamPart[] {
    return this.latestUsage === undefined ? [] : [{ type: "usage", usage: this.latestUsage }];
  }
}

/** Reduces the deltas of one choice to items that are opened, filled and closed. */
class ChoiceStream {
  /** Whether the choice's `finish` was emitted; later deltas are heartbeats. */
  finished = false;
  private itemCount = 0;
  private text: ItemPlace | undefined;
  private lastText: ItemPlace | undefined;
  private refusal: ItemPlace | undefined;
  private audio: ItemPlace | undefined;
  private readonly reasoning: ReasoningStream;
  private readonly calls: ToolCallStream;

  constructor(
    private readonly index: number,
    surroundings: { responseId: () => string; context: DecodeContext },
  ) {
    this.reasoning = new ReasoningStream(this.nextPlace, surroundings.context);
    this.calls = new ToolCallStream({ nextPlace: this.nextPlace, ...surroundings });
  }

  /**
   * Reads one entry of a chunk's `choices`, and adds its parts. Reasoning precedes text when a
   * chunk has both.
   */
  read(choice: JsonObject, parts: StreamPart[]): void {
    if (this.finished) return;
    const delta = asObject(choice.delta) ?? asObject(choice.message) ?? {};
    if (ReasoningStream.speaks(delta)) parts.push(...this.readReasoning(delta));
    if (choice.logprobs) parts.push(...this.readLogProbabilities(choice.logprobs));
    if (typeof delta.content === "string") this.readText(delta.content, parts);
    else if (delta.content) this.readContentParts(delta.content, parts);
    if (delta.refusal) parts.push(...this.readRefusal(delta.refusal));
    if (delta.annotations) parts.push(...this.readAnnotations(delta.annotations));
    if (delta.audio) parts.push(...this.readAudio(delta.audio));
    if (delta.images) parts.push(...this.readImages(delta.images));
    if (delta.tool_calls || delta.function_call) parts.push(...this.readCalls(delta));
    if (hasFinished(choice)) parts.push(...this.finish(choice));
  }

  /**
   * Closes what is open and says why the choice ended; without a reported reason it is inferred.
   */
  finish(choice: JsonObject = {}): StreamPart[] {
    this.finished = true;
    const finish = reconcileFinish(decodeFinish(choice), this.calls.hasCalls);
    return [
      ...this.reasoning.close(),
      ...this.closeText(),
      ...this.calls.close(),
      { type: "finish", choiceIndex: this.index, finish },
    ];
  }

  private readonly nextPlace = (): ItemPlace => {
    const place = { choiceIndex: this.index, itemIndex: this.itemCount };
    this.itemCount += 1;
    return place;
  };

  private readReasoning(delta: JsonObject): StreamPart[] {
    const parts = this.reasoning.read(delta);
    return parts.length === 0 ? parts : [...this.closeText(), ...parts];
  }

  private readLogProbabilities(value: JsonValue): StreamPart[] {
    const probabilities = decodeLogProbabilities(value);
    const count = (probabilities?.content?.length ?? 0) + (probabilities?.refusal?.length ?? 0);
    return count === 0 ? [] : [{ type: "logprobs", choiceIndex: this.index, ...probabilities }];
  }

  private readContentParts(content: unknown, parts: StreamPart[]): void {
    for (const value of asArray(content) ?? []) {
      const part = asObject(value);
      if (part?.type !== "thinking") {
        this.readText(asString(part?.text) ?? "", parts);
        continue;
      }
      const thoughts = this.reasoning.readThinking(thinkingText(part.thinking));
      if (thoughts.length > 0) parts.push(...this.closeText(), ...thoughts);
    }
  }

  private readText(text: string, parts: StreamPart[]): void {
    if (text === "") return;
    if (this.text === undefined) {
      this.text = this.lastText = this.nextPlace();
      parts.push(...this.reasoning.close(), { type: "text-start", ...this.text });
    }
    const { choiceIndex, itemIndex } = this.text;
    parts.push({ type: "text-delta", choiceIndex, itemIndex, text });
  }

  private closeText(): StreamPart[] {
    const place = this.text;
    this.text = undefined;
    return place === undefined ? [] : [{ type: "text-end", ...place }];
  }

  private readRefusal(value: unknown): StreamPart[] {
    const refusal = asString(value);
    if (!refusal) return [];
    const closed =
      this.refusal === undefined ? [...this.reasoning.close(), ...this.closeText()] : [];
    this.refusal ??= this.nextPlace();
    return [...closed, { type: "refusal-delta", ...this.refusal, refusal }];
  }

  private readAnnotations(value: unknown): StreamPart[] {
    const place = this.lastText;
    if (place === undefined) return [];
    return (asArray(value) ?? []).flatMap((entry): StreamPart[] => {
      const annotation = decodeAnnotation(entry);
      return annotation === undefined ? [] : [{ type: "annotation", ...place, annotation }];
    });
  }

  private readAudio(value: unknown): StreamPart[] {
    const audio = asObject(value);
    if (audio === undefined) return [];
    this.audio ??= this.nextPlace();
    const { id, data, transcript, expires_at: expiresAt } = audio;
    return [
      {
        type: "audio-delta",
        ...this.audio,
        ...(typeof id === "string" && { id }),
        ...(typeof data === "string" && { data }),
        ...(typeof transcript === "string" && { transcript }),
        ...(typeof expiresAt === "number" && { expiresAtSeconds: expiresAt }),
      },
    ];
  }

  private readImages(value: unknown): StreamPart[] {
    return (asArray(value) ?? [])
      .flatMap(decodeImage)
      .map((image) => ({ type: "image", ...this.nextPlace(), image }));
  }

  private readCalls(delta: JsonObject): StreamPart[] {
    const functionCall = asObject(delta.function_call);
    const deltas =
      functionCall === undefined
        ? asArray(delta.tool_calls)
        : [{ index: 0, function: functionCall }];
    if (deltas === undefined || deltas.length === 0) return [];
    const parts = deltas.flatMap((call) => this.calls.read(call));
    return parts.length === 0 ? parts : [...this.reasoning.close(), ...this.closeText(), ...parts];
  }
}

/** Returns the index of a choice; servers that send one choice may omit it. */
const choiceIndexOf = (choice: JsonObject): number => asNumber(choice.index) ?? 0;

/** The field that a stream's readable reasoning comes from. */
type TextSource = "reasoning_details" | "reasoning_content" | "reasoning" | "content";

interface OpenThought {
  place: ItemPlace;
  /** The `index` of the block in `reasoning_details`. */
  blockIndex: number | undefined;
  end: ReasoningEnd;
}

/**
 * The reasoning of one choice. Servers repeat the same text in several fields, so only the first
 * field with text is read; seals are taken from `reasoning_details` in any case.
 */
class ReasoningStream {
  private source: TextSource | undefined;
  private open: OpenThought | undefined;
  private readonly readSeal: SealReader;

  constructor(
    private readonly nextPlace: () => ItemPlace,
    context: DecodeContext,
  ) {
    this.readSeal = sealsOf(context.providerId);
  }

  /** Returns whether the delta carries reasoning, so that open text has to end first. */
  static speaks(delta: JsonObject): boolean {
    return (
      Boolean(delta.reasoning_content) ||
      Boolean(delta.reasoning) ||
      (Array.isArray(delta.reasoning_details) && delta.reasoning_details.length > 0)
    );
  }

  read(delta: JsonObject): StreamPart[] {
    const parts: StreamPart[] = [];
    const details = asArray(delta.reasoning_details) ?? [];
    for (const value of details) {
      const detail = asObject(value);
      if (detail !== undefined) this.readDetail(detail, parts);
    }
    for (const source of ["reasoning_content", "reasoning"] as const) {
      const text = asString(delta[source]);
      if (text && this.listensTo(source)) this.append({ text }, parts);
    }
    return parts;
  }

  /** Reads a thinking part within a delta's content (Mistral). */
  readThinking(text: string): StreamPart[] {
    const parts: StreamPart[] = [];
    if (text !== "" && this.listensTo("content")) this.append({ text }, parts);
    return parts;
  }

  /** Closes the open block, with the seals that it received. */
  close(): StreamPart[] {
    const { open } = this;
    this.open = undefined;
    return open === undefined ? [] : [open.end];
  }

  private listensTo(source: TextSource): boolean {
    this.source ??= source;
    return this.source === source;
  }

  private readDetail(detail: JsonObject, parts: StreamPart[]): void {
    const blockIndex = asNumber(detail.index);
    if (
      blockIndex !== undefined &&
      this.open?.blockIndex !== undefined &&
      this.open.blockIndex !== blockIndex
    ) {
      parts.push(...this.close());
    }
    const text = asString(detail.text);
    const summary = asString(detail.summary);
    const start = { id: asString(detail.id), format: asString(detail.format), blockIndex };
    if (text && this.listensTo("reasoning_details")) this.append({ text, ...start }, parts);
    if (summary && this.listensTo("reasoning_details")) {
      this.append({ text: summary, summaryIndex: asPlace(detail.summary_index), ...start }, parts);
    }
    this.seal({ detail, start }, parts);
  }

  private seal(
    { detail, start }: { detail: JsonObject; start: ThoughtStart },
    parts: StreamPart[],
  ): void {
    for (const [field, value] of [
      ["signature", detail.signature],
      ["encrypted", detail.data],
    ] as const) {
      const sealed = asString(value);
      if (!sealed) continue;
      const { seal, provenance } = this.readSeal(sealed);
      const { end } = this.opened(start, parts);
      end[field] = seal;
      if (provenance !== undefined) end.provenance = provenance;
    }
  }

  private append(
    piece: { text: string; summaryIndex?: number } & Partial<ThoughtStart>,
    parts: StreamPart[],
  ): void {
    const { place } = this.opened(piece, parts);
    const { text, summaryIndex } = piece;
    parts.push({
      type: "reasoning-delta",
      ...place,
      text,
      ...(summaryIndex !== undefined && { summaryIndex }),
    });
  }

  private opened(
    { id, format, blockIndex }: Partial<ThoughtStart>,
    parts: StreamPart[],
  ): OpenThought {
    if (this.open !== undefined) {
      this.open.blockIndex ??= blockIndex;
      return this.open;
    }
    const place = this.nextPlace();
    parts.push({
      type: "reasoning-start",
      ...place,
      ...(id !== undefined && { id }),
      ...(format !== undefined && { format }),
    });
    return (this.open = { place, blockIndex, end: { type: "reasoning-end", ...place } });
  }
}

interface ThoughtStart {
  id: string | undefined;
  format: string | undefined;
  blockIndex: number | undefined;
}

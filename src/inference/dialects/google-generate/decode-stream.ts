import {
  reconcileFinish,
  type Finish,
  type MeteredUsage,
  type ErrorPart,
  type ItemPlace,
  type ReasoningEnd,
  type SpokenPart,
  type StreamPart,
} from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { DecodeContext } from "../dialect.ts";
import type { SkippedTexts, StreamDecoder } from "../shared/stream/stream-decoder.ts";
import { cutStream, looksLikeObject, malformedEvent, textError, trimmed } from "../errors.ts";
import { asArray, asNumber, asObject, asString } from "../shared/wire-fields.ts";
import { unwrapInput } from "../shared/tools.ts";
import { SearchReader } from "../shared/extras/web-search.ts";
import {
  decodeAnyFinish,
  decodeFinish,
  decodeGrounding,
  decodeLogProbabilities,
  decodePromptBlock,
  readFailure,
} from "./answer-fields.ts";
import { readStreamError } from "./errors.ts";
import { hasUsage, readUsage } from "./usage.ts";

/**
 * Decodes the chunks of a Gemini stream to canonical parts. Chunks have no names, no terminal event
 * follows them, and each is a whole answer of its own. Finish and usage are emitted when the
 * connection ends: usage is cumulative on every chunk, and content may follow a finish reason.
 */
export class GenerateStreamDecoder implements StreamDecoder {
  readonly keepsTexts = true;
  private readonly candidates = new Map<number, CandidateStream>();
  private readonly callIds = new Set<string>();
  private idSeed = "";
  answerId: string | undefined;
  /** The latest event, for a writer that keeps its bytes; undefined where it was no chunk. */
  chunk: JsonObject | undefined;
  /** The latest usage as the upstream wrote it. */
  usageFields: JsonObject | undefined;
  private started = false;
  private ended = false;

  constructor(private readonly context: DecodeContext = {}) {}

  decode(event: { event?: string; data: string }): StreamPart[] {
    this.chunk = undefined;
    if (this.ended) return [];
    const data = trimmed(event.data);
    const isError = event.event === "error";
    // Proxies send comments and keep-alives as data too; a chunk is always an object or, without
    // alt=sse, a list of them.
    if (!looksLikeObject(data)) return isError ? this.fail(textError(data)) : [];
    try {
      const body = JSON.parse(data) as JsonValue;
      this.chunk = asObject(body);
      return this.readChunks(body);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return this.fail(isError ? textError(data) : malformedEvent);
    }
  }

  skip({ type, choiceIndex }: SpokenPart, { text }: SkippedTexts): void {
    if (type === "text-delta") this.candidates.get(choiceIndex)?.note(text);
  }

  /** Reads a parsed chunk, or a list of them. */
  readChunks(body: JsonValue): StreamPart[] {
    const parts: StreamPart[] = [];
    for (const value of asArray(body) ?? [body]) {
      const chunk = asObject(value);
      if (chunk === undefined || this.ended) continue;
      const error = readStreamError(chunk);
      this.readChunk(chunk, parts);
      if (error !== undefined)
        parts.push(...this.fail({ type: "error", fault: "reported", error }));
    }
    return parts;
  }

  /** Computed on access, since every chunk reports the usage so far. */
  get latestUsage(): MeteredUsage | undefined {
    const metered = readUsage(this.usageFields);
    let searches = 0;
    for (const candidate of this.candidates.values()) searches += candidate.searchCount;
    if (searches === 0) return metered;
    const counted = metered ?? { usage: {}, estimated: false, clamped: false };
    return { ...counted, usage: { ...counted.usage, searches } };
  }

  /** Whether every candidate has said how it ended; content and usage may still follow. */
  get isComplete(): boolean {
    for (const candidate of this.candidates.values()) if (!candidate.hasEnding) return false;
    return this.candidates.size > 0;
  }

  end(): StreamPart[] {
    if (this.ended) return [];
    return this.isComplete ? this.finish() : this.fail(cutStream);
  }

  /** Ends an answer that is known to be complete, even where it does not say how it ended. */
  finish(): StreamPart[] {
    if (this.ended) return [];
    this.ended = true;
    return [
      ...[...this.candidates.values()].flatMap((candidate) => candidate.finish()),
      ...this.usageParts(),
      { type: "response-end" },
    ];
  }

  private readChunk(chunk: JsonObject, parts: StreamPart[]): void {
    const usageFields = asObject(chunk.usageMetadata);
    if (usageFields !== undefined && hasUsage(usageFields)) this.usageFields = usageFields;
    this.answerId ??= asString(chunk.responseId) || undefined;
    const candidates = asArray(chunk.candidates) ?? [];
    if (!candidates.some((value) => asObject(value) !== undefined)) {
      this.readPromptBlock(chunk, parts);
      return;
    }
    this.start(chunk, parts);
    for (const value of candidates) {
      const fields = asObject(value);
      if (fields === undefined) continue;
      this.candidate(asNumber(fields.index) ?? 0).read(fields, parts);
      const error = this.context.keepsFailures === true ? undefined : readFailure(fields);
      if (error === undefined) continue;
      parts.push(...this.fail({ type: "error", fault: "reported", error }));
      return;
    }
  }

  private readPromptBlock(chunk: JsonObject, parts: StreamPart[]): void {
    const block = decodePromptBlock(asObject(chunk.promptFeedback));
    if (block === undefined) return;
    this.start(chunk, parts);
    const blocked = this.candidate(0);
    blocked.ending = block;
    blocked.hasEnding = true;
  }

  private candidate(index: number): CandidateStream {
    let candidate = this.candidates.get(index);
    if (candidate === undefined) {
      candidate = new CandidateStream(index, { context: this.context, callId: this.callId });
      this.candidates.set(index, candidate);
    }
    return candidate;
  }

  /**
   * Returns the model's own call id where there is one. Other ids are made unique within the
   * stream, since chunks know nothing of each other.
   */
  private readonly callId = (reported: string | undefined): string => {
    const id =
      reported !== undefined && reported !== "" && !this.callIds.has(reported)
        ? reported
        : `call_${this.idSeed}_${this.callIds.size}`;
    this.callIds.add(id);
    return id;
  };

  private start(chunk: JsonObject, parts: StreamPart[]): void {
    if (this.started) return;
    this.started = true;
    const id = asString(chunk.responseId) ?? "";
    const seed = id || this.context.callSeed || Bun.hash.crc32(JSON.stringify(chunk)).toString(16);
    this.idSeed = seed.replace(/[^a-zA-Z0-9]/g, "").slice(-24);
    const createdMs = Date.parse(asString(chunk.createTime) ?? "");
    parts.push({
      type: "response-start",
      id,
      model: asString(chunk.modelVersion) ?? "",
      createdAtSeconds: Number.isNaN(createdMs) ? 0 : Math.floor(createdMs / 1_000),
    });
  }

  private fail(error: ErrorPart): StreamPart[] {
    if (this.ended) return [];
    this.ended = true;
    return [...this.usageParts(), error];
  }

  private usageParts(): StreamPart[] {
    const usage = this.latestUsage;
    return usage === undefined ? [] : [{ type: "usage", usage }];
  }
}

/** The state of the stream around a candidate. */
interface CandidateSurroundings {
  context: DecodeContext;
  /** Returns an id for a call that has none, or one that was used before. */
  callId(reported: string | undefined): string;
}

/** Reduces the chunks of one candidate to items that are opened, filled and closed. */
class CandidateStream {
  /**
   * The end that the candidate stated. Content may still follow, and older models report STOP on
   * every chunk.
   */
  ending: Finish | undefined;
  /** Whether any chunk named a finish reason, known or not. */
  hasEnding = false;
  private itemCount = 0;
  private text: ItemPlace | undefined;
  private lastText: ItemPlace | undefined;
  private thought: ItemPlace | undefined;
  /** A thought signature on a text, which is emitted once the text has ended. */
  private seal: string | undefined;
  private hasCalls = false;
  private said = "";
  private groundingMetadata: JsonObject | undefined;

  /** The queries of searches that stand among the parts, as beside functions. */
  private queryCount = 0;

  /** The searches that Google ran for this candidate, which it charges one by one. */
  get searchCount(): number {
    const grounded = asArray(this.groundingMetadata?.webSearchQueries)?.length ?? 0;
    return Math.max(grounded, this.queryCount);
  }
  private citationMetadata: JsonObject | undefined;

  constructor(
    private readonly index: number,
    private readonly surroundings: CandidateSurroundings,
  ) {}

  /** Reads one entry of a chunk's `candidates`, and adds its parts. */
  read(candidate: JsonObject, parts: StreamPart[]): void {
    const probabilities = decodeLogProbabilities(candidate.logprobsResult);
    if (probabilities !== undefined)
      parts.push({ type: "logprobs", choiceIndex: this.index, ...probabilities });
    for (const value of asArray(asObject(candidate.content)?.parts) ?? []) {
      const part = asObject(value);
      if (part !== undefined) this.readPart(part, parts);
    }
    this.groundingMetadata = asObject(candidate.groundingMetadata) ?? this.groundingMetadata;
    this.citationMetadata = asObject(candidate.citationMetadata) ?? this.citationMetadata;
    if (asString(candidate.finishReason)) {
      this.hasEnding = true;
      this.ending =
        this.surroundings.context.keepsFailures === true
          ? decodeAnyFinish(candidate)
          : decodeFinish(candidate);
    }
  }

  /** Notes text of a chunk that is not read. */
  note(text: string): void {
    this.said += text;
  }

  /** Closes what is open and says why the candidate ended. */
  finish(): StreamPart[] {
    const { lastText, groundingMetadata, citationMetadata } = this;
    const sources = {
      ...(groundingMetadata !== undefined && { groundingMetadata }),
      ...(citationMetadata !== undefined && { citationMetadata }),
    };
    const annotations =
      lastText === undefined
        ? []
        : decodeGrounding(sources, this.said).map(
            (annotation) => ({ type: "annotation", ...lastText, annotation }) as const,
          );
    return [
      ...this.close(),
      ...annotations,
      {
        type: "finish",
        choiceIndex: this.index,
        finish: reconcileFinish(this.ending, this.hasCalls),
      },
    ];
  }

  private readPart(part: JsonObject, parts: StreamPart[]): void {
    const text = asString(part.text);
    const seal = asString(part.thoughtSignature);
    const call = asObject(part.functionCall);
    if (text !== undefined && part.thought === true) this.addThought({ text, seal }, parts);
    else if (text !== undefined) this.addText({ text, seal }, parts);
    else if (call !== undefined) this.addCall({ call, seal }, parts);
    else if (part.thought !== true) this.addOther({ part, seal }, parts);
  }

  private addThought(
    { text, seal }: { text: string; seal: string | undefined },
    parts: StreamPart[],
  ): void {
    if (text !== "") {
      const thought = this.openThought(parts);
      parts.push({ type: "reasoning-delta", ...thought, text });
    }
    if (seal === undefined) return;
    parts.push(this.thoughtEnd(this.openThought(parts), seal));
    this.thought = undefined;
  }

  private openThought(parts: StreamPart[]): ItemPlace {
    if (this.thought !== undefined) return this.thought;
    parts.push(...this.close());
    this.thought = this.nextPlace();
    parts.push({ type: "reasoning-start", ...this.thought });
    return this.thought;
  }

  private addText(
    { text, seal }: { text: string; seal: string | undefined },
    parts: StreamPart[],
  ): void {
    if (text !== "") {
      this.said += text;
      if (this.text === undefined) {
        parts.push(...this.close());
        this.text = this.lastText = this.nextPlace();
        parts.push({ type: "text-start", ...this.text });
      }
      const { choiceIndex, itemIndex } = this.text;
      parts.push({ type: "text-delta", choiceIndex, itemIndex, text });
    }
    if (seal !== undefined) this.seal = seal;
  }

  /** Adds a call. Each comes complete in one part. */
  private addCall(
    { call, seal }: { call: JsonObject; seal: string | undefined },
    parts: StreamPart[],
  ): void {
    const wireName = asString(call.name);
    if (!wireName) return;
    this.hasCalls = true;
    const { context, callId } = this.surroundings;
    const alias = context.toolAliases?.get(wireName);
    const unwraps = alias?.unwrapsInput === true;
    const text = JSON.stringify(asObject(call.args) ?? {});
    parts.push(...this.close());
    const place = this.nextPlace();
    parts.push(
      {
        type: "tool-call-start",
        ...place,
        kind: unwraps ? "custom" : "function",
        id: callId(asString(call.id)),
        name: alias?.name ?? wireName,
        ...(alias?.namespace !== undefined && { namespace: alias.namespace }),
        ...this.sealed(seal),
      },
      { type: "tool-call-delta", ...place, arguments: unwraps ? unwrapInput(text) : text },
      { type: "tool-call-end", ...place },
    );
  }

  /** Adds images, sound, and parts that only Gemini has. */
  private addOther(
    { part, seal }: { part: JsonObject; seal: string | undefined },
    parts: StreamPart[],
  ): void {
    parts.push(...this.close());
    const { inlineData, thoughtSignature: _seal, ...value } = part;
    const blob = asObject(inlineData);
    const mediaType = asString(blob?.mimeType) ?? "";
    const data = asString(blob?.data);
    // Drafts that a model makes while it thinks are no part of its answer.
    if (data !== undefined && value["thought"] === true) return;
    if (data !== undefined && mediaType.startsWith("image/")) {
      parts.push({
        type: "image",
        ...this.nextPlace(),
        image: { type: "image", source: { type: "base64", mediaType, data } },
      });
    } else if (data !== undefined && mediaType.startsWith("audio/")) {
      parts.push({ type: "audio-delta", ...this.nextPlace(), data });
    } else if (Object.keys(part).some((key) => key !== "thoughtSignature")) {
      const opaque = {
        type: "opaque",
        dialect: "google-generate",
        value: { ...value, ...(blob && { inlineData: blob }) },
      } as const;
      parts.push({ type: "opaque", ...this.nextPlace(), part: opaque });
      this.queryCount += new SearchReader().read(opaque)?.queries.length ?? 0;
    }
    // What Google's own tools did goes back to no one else's model, and its seal with it.
    if (seal !== undefined && !("toolCall" in part || "toolResponse" in part)) this.seal = seal;
  }

  /** Ends the open item; a seal on it follows as a reasoning block without words. */
  private close(): StreamPart[] {
    const { text, thought, seal } = this;
    this.text = this.thought = this.seal = undefined;
    const parts: StreamPart[] = [];
    if (thought !== undefined) parts.push({ type: "reasoning-end", ...thought });
    if (text !== undefined) parts.push({ type: "text-end", ...text });
    if (seal !== undefined) {
      const place = this.nextPlace();
      parts.push({ type: "reasoning-start", ...place }, this.thoughtEnd(place, seal));
    }
    return parts;
  }

  private thoughtEnd(place: ItemPlace, seal: string): ReasoningEnd {
    return { type: "reasoning-end", ...place, ...this.sealed(seal) };
  }

  /** Returns a seal with its maker. */
  private sealed(signature: string | undefined): Pick<ReasoningEnd, "signature" | "provenance"> {
    const { providerId } = this.surroundings.context;
    if (signature === undefined) return {};
    return { signature, ...(providerId !== undefined && { provenance: { providerId } }) };
  }

  private nextPlace(): ItemPlace {
    const place = { choiceIndex: this.index, itemIndex: this.itemCount };
    this.itemCount += 1;
    return place;
  }
}

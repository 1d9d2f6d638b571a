import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { ErrorPart, StreamPart } from "../../canonical/stream-part.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import type { DecodeContext, StreamDecoder } from "../dialect.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import { cutStream, looksLikeObject, malformedEvent, trimmed } from "../stream-failures.ts";
import { CandidateStream } from "./candidate-stream.ts";
import { decodePromptBlock, readFailure } from "./finish-fields.ts";
import { readStreamError } from "./read-error.ts";
import { hasUsage, readUsage } from "./read-usage.ts";

/**
 * Chunks of a Gemini stream to canonical parts. Chunks have no names, no terminal event follows them,
 * and each is a whole answer of its own. Finish and usage are given out when the connection ends: usage
 * is cumulative on every chunk, and content may follow a finish reason.
 */
export class GenerateStreamDecoder implements StreamDecoder {
  private readonly context: DecodeContext;
  private readonly candidates = new Map<number, CandidateStream>();
  private readonly callIds = new Set<string>();
  private idSeed = "";
  private usageFields: JsonObject | undefined;
  private started = false;
  private ended = false;

  constructor(context: DecodeContext = {}) {
    this.context = context;
  }

  decode(event: { event?: string; data: string }): StreamPart[] {
    const data = trimmed(event.data);
    // Proxies send comments and keep-alives as data too; a chunk is always an object or, without alt=sse, a list of them.
    if (this.ended || !looksLikeObject(data)) return [];
    try {
      return this.readChunks(JSON.parse(data));
    } catch (error) {
      if (error instanceof SyntaxError) return this.fail(malformedEvent);
      throw error;
    }
  }

  /** A parsed chunk, or a list of them. */
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

  /** Read when it is asked for: every chunk tells the usage so far. */
  get latestUsage(): MeteredUsage | undefined {
    return readUsage(this.usageFields);
  }

  /** Every candidate has said how it ended; content may still follow, usage too. */
  get isComplete(): boolean {
    for (const candidate of this.candidates.values()) if (!candidate.hasEnding) return false;
    return this.candidates.size > 0;
  }

  end(): StreamPart[] {
    if (this.ended) return [];
    return this.isComplete ? this.finish() : this.fail(cutStream);
  }

  /** The end of an answer that is known to be complete, even where it does not say how it ended. */
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
      const error = readFailure(fields);
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

  /** The model's own id where it has one; ids are minted for the whole stream, since chunks know nothing of each other. */
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
    this.idSeed =
      id.replace(/[^a-zA-Z0-9]/g, "").slice(-24) ||
      Bun.hash.crc32(JSON.stringify(chunk)).toString(16);
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

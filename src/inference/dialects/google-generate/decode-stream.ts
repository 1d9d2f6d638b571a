import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { ErrorPart, StreamPart } from "../../canonical/stream-part.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import type { DecodeContext, StreamDecoder } from "../dialect.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import { cutStream, malformedEvent } from "../stream-failures.ts";
import { CandidateStream } from "./candidate-stream.ts";
import { decodePromptBlock, readFailure } from "./finish-fields.ts";
import { readStreamError } from "./read-error.ts";
import { readUsage } from "./read-usage.ts";

/**
 * Chunks of a Gemini stream to canonical parts. Chunks have no names, no terminal event follows them,
 * and each is a whole answer of its own. Finish and usage are given out when the connection ends: usage
 * is cumulative on every chunk, and content may follow a finish reason.
 */
export class GenerateStreamDecoder implements StreamDecoder {
  latestUsage: MeteredUsage | undefined;
  private readonly context: DecodeContext;
  private readonly candidates = new Map<number, CandidateStream>();
  private readonly callIds = new Set<string>();
  private idSeed = "";
  private started = false;
  private ended = false;

  constructor(context: DecodeContext = {}) {
    this.context = context;
  }

  decode(event: { event?: string; data: string }): StreamPart[] {
    const data = event.data.trim();
    // Proxies send comments and keep-alives as data too; a chunk is always an object or, without alt=sse, a list of them.
    if (this.ended || !/^\[?\s*\{/.test(data)) return [];
    try {
      return this.readChunks(JSON.parse(data));
    } catch (error) {
      if (error instanceof SyntaxError) return this.fail(malformedEvent);
      throw error;
    }
  }

  /** A parsed chunk, or a list of them. */
  readChunks(body: JsonValue): StreamPart[] {
    return (asArray(body) ?? [body]).flatMap((value) => {
      const chunk = asObject(value);
      if (chunk === undefined || this.ended) return [];
      const error = readStreamError(chunk);
      const failure = error === undefined ? [] : [{ type: "error", fault: "reported", error } as const];
      return [...this.readChunk(chunk), ...failure.flatMap((part) => this.fail(part))];
    });
  }

  /** Every candidate has said how it ended; content may still follow, usage too. */
  get isComplete(): boolean {
    return this.candidates.size > 0 && [...this.candidates.values()].every((candidate) => candidate.hasEnding);
  }

  end(): StreamPart[] {
    if (this.ended) return [];
    return this.isComplete ? this.finish() : this.fail(cutStream);
  }

  /** The end of an answer that is known to be complete, even where it does not say how it ended. */
  finish(): StreamPart[] {
    if (this.ended) return [];
    this.ended = true;
    return [...[...this.candidates.values()].flatMap((candidate) => candidate.finish()), ...this.usageParts(), { type: "response-end" }];
  }

  private readChunk(chunk: JsonObject): StreamPart[] {
    this.latestUsage = readUsage(chunk.usageMetadata) ?? this.latestUsage;
    const candidates = (asArray(chunk.candidates) ?? []).map(asObject).filter((fields) => fields !== undefined);
    const block = candidates.length > 0 ? undefined : decodePromptBlock(asObject(chunk.promptFeedback));
    if (candidates.length === 0 && block === undefined) return [];
    const parts = this.start(chunk);
    if (block !== undefined) {
      const blocked = this.candidate(0);
      blocked.ending = block;
      blocked.hasEnding = true;
    }
    for (const fields of candidates) {
      parts.push(...this.candidate(asNumber(fields.index) ?? 0).read(fields));
      const error = readFailure(fields);
      if (error !== undefined) return [...parts, ...this.fail({ type: "error", fault: "reported", error })];
    }
    return parts;
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
    const id = reported !== undefined && reported !== "" && !this.callIds.has(reported)
      ? reported
      : `call_${this.idSeed}_${this.callIds.size}`;
    this.callIds.add(id);
    return id;
  };

  private start(chunk: JsonObject): StreamPart[] {
    if (this.started) return [];
    this.started = true;
    const id = asString(chunk.responseId) ?? "";
    this.idSeed = id.replace(/[^a-zA-Z0-9]/g, "").slice(-24) || Bun.hash.crc32(JSON.stringify(chunk)).toString(16);
    const createdMs = Date.parse(asString(chunk.createTime) ?? "");
    return [{
      type: "response-start",
      id,
      model: asString(chunk.modelVersion) ?? "",
      createdAtSeconds: Number.isNaN(createdMs) ? 0 : Math.floor(createdMs / 1_000),
    }];
  }

  private fail(error: ErrorPart): StreamPart[] {
    if (this.ended) return [];
    this.ended = true;
    return [...this.usageParts(), error];
  }

  private usageParts(): StreamPart[] {
    return this.latestUsage === undefined ? [] : [{ type: "usage", usage: this.latestUsage }];
  }
}

import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/reported-error.ts";
import type { ErrorPart, StreamPart } from "../../canonical/stream-part.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import type { DecodeContext, StreamDecoder } from "../dialect.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import {
  cutStream,
  looksLikeObject,
  malformedEvent,
  parseEventObject,
  trimmed,
} from "../stream-failures.ts";
import { readStreamError } from "./read-error.ts";
import { readUsageOf } from "./read-usage.ts";
import { ChoiceStream, choiceIndexOf } from "./stream-choice.ts";

/**
 * Chunks of a chat stream to canonical parts. Usage may come after the finish, on it, on every chunk or
 * never; it is given out once, at the end. Ends without `[DONE]` are whole when every choice has
 * finished, and an error otherwise.
 */
export class ChatStreamDecoder implements StreamDecoder {
  latestUsage: MeteredUsage | undefined;
  private readonly context: DecodeContext;
  private readonly choices = new Map<number, ChoiceStream>();
  private responseId = "";
  private started = false;
  private ended = false;

  constructor(context: DecodeContext = {}) {
    this.context = context;
  }

  decode(event: { event?: string; data: string }): StreamPart[] {
    if (this.ended) return [];
    const data = trimmed(event.data);
    if (data === "[DONE]") return this.finish();
    // Servers send comments and keep-alives as data too; a chunk is always an object, an error may stand in a list.
    if (!looksLikeObject(data)) return event.event === "error" ? this.fail(textError(data)) : [];
    const chunk = parseEventObject(data);
    if (chunk === undefined) return this.fail(malformedEvent);
    const error = readStreamError(
      event.event === "error" && chunk.error === undefined ? { error: chunk } : chunk,
    );
    return error === undefined ? this.readChunk(chunk) : this.readLastChunk(chunk, error);
  }

  end(): StreamPart[] {
    if (this.ended) return [];
    const whole =
      this.choices.size > 0 && [...this.choices.values()].every((choice) => choice.finished);
    return whole ? this.finish() : this.fail(cutStream);
  }

  /** Content that came along with an error still counts; an end that came along does not. */
  private readLastChunk(chunk: JsonObject, error: ReportedError): StreamPart[] {
    const parts = this.readChunk(chunk).filter((part) => part.type !== "finish");
    return [...parts, ...this.fail({ type: "error", error, fault: "reported" })];
  }

  private readChunk(chunk: JsonObject): StreamPart[] {
    const usage = readUsageOf(chunk);
    if (usage !== undefined) this.latestUsage = usage;
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
        responseId: () => this.responseId,
        context: this.context,
      });
      this.choices.set(index, choice);
    }
    choice.read(fields, parts);
  }

  /** The first chunk with a choice; Azure's very first one has neither id nor choices. */
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

const textError = (text: string): ErrorPart => ({
  type: "error",
  fault: "reported",
  error: { message: text === "" ? "The provider ended the stream with an error." : text },
});

import type { EventStreamCodec } from "@smithy/eventstream-codec";
import type { EventDecoder, SseEvent } from "./sse-decoder.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/**
 * The event that an exception becomes: one with its own name after `exception:`, or Anthropic's
 * event `error`.
 */
export type ExceptionForm = "named" | "messages-error";

/** Creates a decoder for one stream. The codec is loaded when the first such stream comes. */
export async function openEventStream(form: ExceptionForm): Promise<EventStreamDecoder> {
  const { EventStreamCodec } = await import("@smithy/eventstream-codec");
  const toText = (bytes: Uint8Array | string): string =>
    typeof bytes === "string" ? bytes : textOf(bytes);
  return new EventStreamDecoder(new EventStreamCodec(toText, (text) => Buffer.from(text)), form);
}

/** The most bytes of one message, so that a false length cannot exhaust the memory. */
const maxMessageBytes = 16 * 1024 * 1024;
/** The total length, the headers' length and a checksum over both: three times four bytes. */
const preludeBytes = 12;
const checksumBytes = 4;

/**
 * Decodes an Amazon event stream (application/vnd.amazon.eventstream) into the events in its
 * payloads: with Claude on Bedrock, each chunk holds one of Anthropic's events in base64; Converse
 * names its events in a header. Throws `UpstreamFailure` for bytes that are not such a stream.
 * Source: docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html (2026-11).
 */
export class EventStreamDecoder implements EventDecoder {
  private held: Uint8Array = new Uint8Array(0);

  constructor(
    private readonly codec: EventStreamCodec,
    private readonly form: ExceptionForm,
  ) {}

  /** Returns the events that this chunk completes. The owner may reuse the chunk afterwards. */
  push(chunk: Uint8Array): SseEvent[] {
    let rest = this.held.byteLength === 0 ? chunk : Buffer.concat([this.held, chunk]);
    const events: SseEvent[] = [];
    for (let length = messageLength(rest); length !== undefined; length = messageLength(rest)) {
      const event = this.eventOf(rest.subarray(0, length));
      if (event !== undefined) events.push(event);
      rest = rest.subarray(length);
    }
    // This copies; a Buffer's own `slice` would not.
    this.held = new Uint8Array(rest);
    return events;
  }

  /** Ends the stream. A truncated message yields no event, so the reader finds the stream cut. */
  end(): SseEvent[] {
    this.held = new Uint8Array(0);
    return [];
  }

  private eventOf(bytes: Uint8Array): SseEvent | undefined {
    const { headers, text } = this.decode(bytes);
    const messageType = headers(":message-type");
    if (messageType === "exception")
      return this.exception(headers(":exception-type") ?? "", messageOf(text));
    if (messageType === "error")
      return this.exception(
        headers(":error-code") ?? "",
        headers(":error-message") ?? messageOf(text),
      );
    const eventType = headers(":event-type");
    const inner = eventType === "chunk" ? bytesOf(text) : undefined;
    return inner === undefined ? named(eventType, text) : named(field(inner, "type"), inner);
  }

  /** Returns the headers with text values, and the payload. */
  private decode(bytes: Uint8Array): {
    headers: (name: string) => string | undefined;
    text: string;
  } {
    try {
      const { headers, body } = this.codec.decode(bytes);
      const header = (name: string): string | undefined => {
        const value: unknown = headers[name]?.value;
        return typeof value === "string" ? value : undefined;
      };
      return { headers: header, text: textOf(body) };
    } catch (error) {
      throw broken(error instanceof Error ? error.message : String(error));
    }
  }

  private exception(name: string, message: string): SseEvent {
    if (this.form === "named")
      return { event: `exception:${name}`, data: JSON.stringify({ message }) };
    const type =
      errorTypeByException[`${name.charAt(0).toLowerCase()}${name.slice(1)}`] ?? "api_error";
    return {
      event: "error",
      data: JSON.stringify({ type: "error", error: { type, message: message || name } }),
    };
  }
}

/** Anthropic's error types for Amazon's exceptions; all others are an `api_error`. */
const errorTypeByException: Readonly<Record<string, string>> = {
  throttlingException: "rate_limit_error",
  validationException: "invalid_request_error",
  accessDeniedException: "permission_error",
  resourceNotFoundException: "not_found_error",
  serviceUnavailableException: "overloaded_error",
  modelTimeoutException: "timeout_error",
};

/**
 * Returns the length of the first message; undefined while it is incomplete. The prelude is checked
 * before the rest is awaited; the codec checks the rest.
 */
function messageLength(bytes: Uint8Array): number | undefined {
  if (bytes.byteLength < preludeBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(0);
  const lengthsBytes = preludeBytes - checksumBytes;
  if (Bun.hash.crc32(bytes.subarray(0, lengthsBytes)) !== view.getUint32(lengthsBytes))
    throw broken("a checksum is wrong");
  if (length > maxMessageBytes) throw broken("a message is too large");
  if (preludeBytes + view.getUint32(4) + checksumBytes > length)
    throw broken("the lengths of a message do not fit");
  return bytes.byteLength < length ? undefined : length;
}

const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");

const named = (event: string | undefined, data: string): SseEvent => ({
  ...(event !== undefined && { event }),
  data,
});

/** Returns the payload of a chunk, `{"bytes": base64}` beside padding. */
function bytesOf(text: string): string | undefined {
  const bytes = field(text, "bytes");
  return bytes === undefined ? undefined : Buffer.from(bytes, "base64").toString("utf8");
}

const messageOf = (text: string): string =>
  field(text, "message") ?? field(text, "Message") ?? field(text, "originalMessage") ?? text;

/** Returns a text member of a JSON object; undefined where there is none. */
function field(text: string, name: string): string | undefined {
  try {
    const value = (JSON.parse(text) as Record<string, unknown> | null)?.[name];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

const broken = (observation: string): UpstreamFailure =>
  new UpstreamFailure("malformed_response", `the event stream is broken: ${observation}`, {
    sent: true,
  });

import { readMessage, type EventStreamMessage } from "./event-stream-frames-message.ts";
import type { SseEvent } from "./sse-event.ts";

/**
 * Bytes of an Amazon event stream (application/vnd.amazon.eventstream) to the events that their payloads
 * stand for: with Claude on Bedrock, each chunk holds one event of Anthropic's in base64. Exceptions
 * become error events as Anthropic has them. Throws `UpstreamFailure` for bytes that are no such stream.
 */
export class EventStreamFrames {
  private held: Uint8Array = new Uint8Array(0);

  /** The events that this chunk completes. The chunk may be reused by its owner afterwards. */
  push(chunk: Uint8Array): SseEvent[] {
    let rest = this.held.byteLength === 0 ? chunk : Buffer.concat([this.held, chunk]);
    const events: SseEvent[] = [];
    for (let read = readMessage(rest); read !== undefined; read = readMessage(rest)) {
      const event = eventOf(read.message);
      if (event !== undefined) events.push(event);
      rest = rest.subarray(read.byteLength);
    }
    // A copy; a Buffer's own `slice` is none.
    this.held = new Uint8Array(rest);
    return events;
  }

  /** The stream has ended. A message that was cut is none; whoever waits for more finds the stream cut. */
  end(): SseEvent[] {
    this.held = new Uint8Array(0);
    return [];
  }
}

function eventOf({ headers, payload }: EventStreamMessage): SseEvent | undefined {
  const text = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("utf8");
  const messageType = headers.get(":message-type");
  if (messageType === "exception") {
    return errorEvent(headers.get(":exception-type") ?? "", messageOf(text));
  }
  if (messageType === "error") {
    return errorEvent(
      headers.get(":error-code") ?? "",
      headers.get(":error-message") ?? messageOf(text),
    );
  }
  const eventType = headers.get(":event-type");
  const inner = eventType === "chunk" ? bytesOf(text) : undefined;
  if (inner !== undefined) return named(typeOf(inner), inner);
  // Converse names its events in the header, and their payload is plain JSON.
  return named(eventType, text);
}

const named = (event: string | undefined, data: string): SseEvent => ({
  ...(event !== undefined && { event }),
  data,
});

/** The payload of a chunk: `{"bytes": base64}`, beside padding. */
function bytesOf(text: string): string | undefined {
  const bytes = field(text, "bytes");
  return bytes === undefined ? undefined : Buffer.from(bytes, "base64").toString("utf8");
}

const typeOf = (text: string): string | undefined => field(text, "type");

const messageOf = (text: string): string =>
  field(text, "message") ?? field(text, "Message") ?? text;

/** A member of a JSON object that is text; undefined where there is none. */
function field(text: string, name: string): string | undefined {
  try {
    const value = (JSON.parse(text) as Record<string, unknown> | null)?.[name];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What Amazon's exceptions are called by Anthropic; the others are an `api_error`. */
const errorTypeByException: Readonly<Record<string, string>> = {
  throttlingException: "rate_limit_error",
  validationException: "invalid_request_error",
  accessDeniedException: "permission_error",
  resourceNotFoundException: "not_found_error",
  serviceUnavailableException: "overloaded_error",
  modelTimeoutException: "timeout_error",
};

function errorEvent(exception: string, message: string): SseEvent {
  const name = exception.charAt(0).toLowerCase() + exception.slice(1);
  const type = errorTypeByException[name] ?? "api_error";
  return {
    event: "error",
    data: JSON.stringify({ type: "error", error: { type, message: message || exception } }),
  };
}

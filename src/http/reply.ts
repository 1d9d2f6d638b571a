import type { FrameSource } from "../platform/kernel/frame-source.ts";

interface ReplyOptions {
  status?: number;
  headers: Record<string, string>;
  cookies?: readonly string[];
}

/** A value that is written as JSON once its text is needed; calls between endpoints take it as it is. */
export class JsonValue {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

/**
 * An answer as this server sends it: a whole text with its length, or frames as they come. A value
 * becomes a text when it is first read as one.
 */
export class Reply {
  readonly status: number;
  /** By name in lower case; values in ASCII, as headers carry them. */
  readonly headers: Record<string, string>;
  /** Values of `set-cookie`, each a header of its own (RFC 6265, 3). */
  readonly cookies: readonly string[] | undefined;
  private content: string | FrameSource | JsonValue;

  constructor(body: string | FrameSource | JsonValue, options: ReplyOptions) {
    this.content = body;
    this.status = options.status ?? 200;
    this.headers = options.headers;
    this.cookies = options.cookies;
  }

  get body(): string | FrameSource {
    if (this.content instanceof JsonValue) this.content = JSON.stringify(this.content.value);
    return this.content;
  }

  /** The value of the answer, where it was not written as a text. */
  get unwritten(): JsonValue | undefined {
    return this.content instanceof JsonValue ? this.content : undefined;
  }
}

/**
 * What a handler answers with; a `Response` of the platform where that is at hand, such as for a
 * page.
 */
export type Answer = Reply | Response;

/** Headers that keep every proxy on the way from buffering or changing a stream. */
export const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

import type { FramePiece, Frames, FrameSource } from "../platform/kernel/frame-source.ts";
import { AnswerHeaders } from "./answer-headers.ts";

interface ReplyOptions {
  status?: number;
  headers: Record<string, string> | AnswerHeaders;
  cookies?: readonly string[];
}

/**
 * A value that is serialised to JSON once its text is needed. Calls between endpoints take it as it
 * is.
 */
class JsonValue {
  constructor(readonly value: unknown) {}
}

/**
 * An answer as this server sends it: a whole text with its length, or frames as they come. A value
 * is serialised when it is first read as text.
 */
export class Reply {
  readonly status: number;
  private readonly answerHeaders: AnswerHeaders;
  /** The values of `set-cookie`, each a header of its own (RFC 6265, 3). */
  readonly cookies: readonly string[] | undefined;
  private content: string | FrameSource | JsonValue;

  constructor(body: string | FrameSource | JsonValue, options: ReplyOptions) {
    this.content = body;
    this.status = options.status ?? 200;
    const { headers } = options;
    this.answerHeaders = headers instanceof AnswerHeaders ? headers : new AnswerHeaders(headers);
    this.cookies = options.cookies;
  }

  /** Creates an answer with a value, which is serialised only where its text is read. */
  static ofValue(value: unknown, options: ReplyOptions): Reply {
    return new Reply(new JsonValue(value), options);
  }

  /** The answer's headers by lower-case name, with ASCII values as HTTP requires. */
  get headers(): Record<string, string> {
    return this.answerHeaders.all;
  }

  /** Adds headers that all answers share. */
  share(headers: Readonly<Record<string, string>>): void {
    this.answerHeaders.share(headers);
  }

  /** Creates the platform's response, whose body is a text or a stream. */
  response(body: string | ReadableStream<FramePiece>): Response {
    if (this.cookies === undefined) return this.answerHeaders.response(body, this.status);
    const headers = new Headers(this.headers);
    for (const cookie of this.cookies) headers.append("set-cookie", cookie);
    return new Response(body, { status: this.status, headers });
  }

  get body(): string | FrameSource {
    if (this.content instanceof JsonValue) this.content = JSON.stringify(this.content.value);
    return this.content;
  }

  /** The value of the answer, where it was not serialised yet. */
  get unwritten(): JsonValue | undefined {
    return this.content instanceof JsonValue ? this.content : undefined;
  }
}

/**
 * A handler's answer. The platform's `Response` is accepted where that is at hand, such as for a
 * page.
 */
export type Answer = Reply | Response;

/** The bodies of the answers that `bytesAnswer` created. */
const comingBodies = new WeakMap<Response, ReadableStream<Uint8Array>>();

/**
 * Creates an answer of bytes that come one after the other, such as sound. It is sent with the
 * deadlines of frames: it may be silent for as long as its source, and ends where its client stops
 * reading. A source that fails breaks it off.
 */
export function bytesAnswer(
  body: ReadableStream<Uint8Array>,
  init: { status?: number; headers: Readonly<Record<string, string>> },
): Response {
  const answer = new Response(body, init);
  comingBodies.set(answer, body);
  return answer;
}

/** Frames, or bytes of which one follows the other. */
export interface AnswerSource extends Omit<FrameSource, "next"> {
  /** Returns what is sent next; undefined at the end. */
  next(): Promise<Frames | undefined>;
  /** Whether `next` may reject, for a reason that was reported where it arose. */
  readonly mayBreakOff?: boolean;
}

/** Returns the bytes of an answer that `bytesAnswer` created; undefined for every other. */
export function comingBytes(answer: Response): AnswerSource | undefined {
  const reader = comingBodies.get(answer)?.getReader();
  return (
    reader && {
      next: async () => {
        const { value } = await reader.read();
        return value && [value];
      },
      cancel: () => void reader.cancel().catch(() => undefined),
      mayBreakOff: true,
    }
  );
}

/** Headers that keep every proxy on the way from buffering or changing a stream. */
export const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

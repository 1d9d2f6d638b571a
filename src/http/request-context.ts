import { lowerBrandHeader } from "../platform/kernel/brand.ts";
import type { FrameSource } from "../platform/kernel/frame-source.ts";
import { AnswerHeaders } from "./answer-headers.ts";
import type { HttpRequest, ServedRequest } from "./http-request.ts";
import type { InnerAnswer, InnerCall } from "./inner-call.ts";

/**
 * Header names of the trace id, in lower case: the service's, the one that OpenAI's clients read,
 * and Anthropic's.
 */
const traceHeaders = [lowerBrandHeader("Trace-Id"), "x-request-id", "request-id"] as const;

/** What the router knows of any request. */
export interface RequestSource<Caller> {
  /** Finds the address that a request came from. */
  addressOf(request: ServedRequest): string;
  /** Says whether a request was encrypted on its way. */
  isEncrypted(request: ServedRequest): boolean;
  /** Calls another endpoint for the client of a request. */
  ask(context: RequestContext<unknown, Caller>, call: InnerCall<Caller>): Promise<InnerAnswer>;
}

/** What a handler knows of its request, and of who sent it as the guard found out. */
export class RequestContext<Body = unknown, Caller = unknown> {
  readonly request: ServedRequest;
  /** 32 hexadecimal digits; sorts by time. */
  readonly traceId: string;
  /** Monotonic time at which the request was seen, in milliseconds. */
  readonly startedMs: number;
  /** Headers of the response to come, be it a success or an error. */
  readonly answerHeaders: AnswerHeaders;
  caller: Caller;
  body!: Body;
  /**
   * Whether a settlement counts this request in the metrics, where its handler knows better than
   * its endpoint.
   */
  settled?: boolean;
  /**
   * Id of the record that the handler made or changed, where the path does not say it; for the
   * audit log.
   */
  changed?: string;
  /**
   * Workspace that the change concerns, where it is not the caller's; its audit log has the change
   * as well.
   */
  changedIn?: string;
  /** Whether another endpoint calls, which takes values instead of texts. */
  private readonly isInner: boolean;
  private readonly source: RequestSource<Caller>;

  constructor(options: {
    request: ServedRequest;
    traceId: string;
    startedMs: number;
    caller: Caller;
    source: RequestSource<Caller>;
    isInner?: boolean;
  }) {
    this.isInner = options.isInner ?? false;
    this.source = options.source;
    this.request = options.request;
    this.traceId = options.traceId;
    this.startedMs = options.startedMs;
    this.caller = options.caller;
    const { traceId } = options;
    this.answerHeaders = new AnswerHeaders({
      [traceHeaders[0]]: traceId,
      [traceHeaders[1]]: traceId,
      [traceHeaders[2]]: traceId,
    });
  }

  /** The headers of the response to come as one record, to be read and changed. */
  get headers(): Record<string, string> {
    return this.answerHeaders.all;
  }

  /** The address that the request came from, past the proxies that are trusted. */
  clientAddress(): string {
    return this.source.addressOf(this.request);
  }

  /**
   * Whether the request was encrypted on its way, as far as this server and the proxies that it
   * trusts can tell.
   */
  isEncrypted(): boolean {
    return this.source.isEncrypted(this.request);
  }

  /**
   * Calls another endpoint for the same client, under the same checks. Throws the `GatewayError`
   * that refuses it.
   */
  ask(call: InnerCall<Caller>): Promise<InnerAnswer> {
    return this.source.ask(this, call);
  }

  /** Path parameter, decoded; empty when the route has none of that name. */
  param(name: string): string {
    return this.request.params[name] ?? "";
  }

  get query(): URLSearchParams {
    return queryOf(this.request);
  }

  /** A JSON response with the headers gathered so far. */
  json(body: unknown, options: { status?: number; headers?: Record<string, string> } = {}): Reply {
    return new Reply(this.isInner ? new JsonValue(body) : JSON.stringify(body), {
      status: options.status ?? 200,
      headers: { "content-type": "application/json", ...this.headers, ...options.headers },
    });
  }
}

/**
 * Where the path starts in a request's URL: a broken `Host` header leaves no URL that could be
 * parsed.
 */
const pathStart = (url: string): number => {
  if (url.startsWith("/")) return 0;
  const start = url.indexOf("/", url.indexOf("//") + 2);
  return start < 0 ? url.length : start;
};

/** Path of a request as it was sent, without the query. */
export function pathOf({ url }: Pick<HttpRequest, "url">): string {
  const query = url.indexOf("?");
  return url.slice(pathStart(url), query < 0 ? undefined : query);
}

/** Query parameters of a request. */
export function queryOf({ url }: Pick<HttpRequest, "url">): URLSearchParams {
  const query = url.indexOf("?");
  return new URLSearchParams(query < 0 ? "" : url.slice(query));
}

interface ReplyOptions {
  status?: number;
  headers: Record<string, string> | AnswerHeaders;
  cookies?: readonly string[];
}

/** A value that is written as JSON once its text is needed; calls between endpoints take it as it is. */
class JsonValue {
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
  private readonly answerHeaders: AnswerHeaders;
  /** Values of `set-cookie`, each a header of its own (RFC 6265, 3). */
  readonly cookies: readonly string[] | undefined;
  private content: string | FrameSource | JsonValue;

  constructor(body: string | FrameSource | JsonValue, options: ReplyOptions) {
    this.content = body;
    this.status = options.status ?? 200;
    const { headers } = options;
    this.answerHeaders = headers instanceof AnswerHeaders ? headers : new AnswerHeaders(headers);
    this.cookies = options.cookies;
  }

  /** By name in lower case; values in ASCII, as headers carry them. */
  get headers(): Record<string, string> {
    return this.answerHeaders.all;
  }

  /** The answer of the platform, whose body is a text or a stream. */
  response(body: string | ReadableStream<string>): Response {
    if (this.cookies === undefined) return this.answerHeaders.response(body, this.status);
    const headers = new Headers(this.headers);
    for (const cookie of this.cookies) headers.append("set-cookie", cookie);
    return new Response(body, { status: this.status, headers });
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

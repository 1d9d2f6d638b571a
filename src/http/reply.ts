import type { FrameSource } from "../platform/lib/frame-source.ts";

/** An answer as this server sends it: a whole text whose length is told, or frames as they come. */
export class Reply {
  readonly status: number;
  /** By name in lower case; values in ASCII, as headers carry them. */
  readonly headers: Record<string, string>;
  /** Values of `set-cookie`, each a header of its own (RFC 6265, 3). */
  readonly cookies: readonly string[] | undefined;
  readonly body: string | FrameSource;

  constructor(
    body: string | FrameSource,
    options: { status?: number; headers: Record<string, string>; cookies?: readonly string[] },
  ) {
    this.body = body;
    this.status = options.status ?? 200;
    this.headers = options.headers;
    this.cookies = options.cookies;
  }
}

/** What a handler answers with; a `Response` of the platform where that is at hand, such as for a page. */
export type Answer = Reply | Response;

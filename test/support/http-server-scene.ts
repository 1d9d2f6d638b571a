import { readBodyText } from "../../src/http/read-body.ts";
import { HttpServer, type HttpServerOptions } from "../../src/http/server/http-server.ts";
import type { IncomingRequest } from "../../src/http/server/incoming-request.ts";
import { Reply } from "../../src/http/server/reply.ts";
import type { FrameSource } from "../../src/platform/lib/frame-source.ts";
import { RawClient } from "./raw-client.ts";

const plain = { "content-type": "text/plain" };

/** Frames that come one by one. */
const frames = (texts: readonly string[], more: Partial<FrameSource> = {}): FrameSource => {
  const left = [...texts];
  return { next: () => Promise.resolve(left.shift()), cancel: () => undefined, ...more };
};

/** One frame that is there at once, and nothing after it. */
function readyFrames(): FrameSource {
  let taken = false;
  const ready = () => {
    taken = true;
    return "all there";
  };
  return frames([], { ready, get isOver() { return taken; } });
}

const threeFrames = ["one ", "", "zwei é "];

/** An HTTP server with a handler for each thing that a handler can do, and what became of it. */
export class HttpServerScene {
  readonly server: HttpServer;
  readonly errors: unknown[] = [];
  /** Frames that have been asked for of the endless stream. */
  pulledFrames = 0;
  /** Settles when a stream is cancelled, when the signal of a held request is aborted, and when one has come. */
  cancelled = Promise.withResolvers<void>();
  aborted = Promise.withResolvers<void>();
  reached = Promise.withResolvers<void>();
  /** What held requests are answered after. */
  held = Promise.withResolvers<void>();
  readonly large = "0123456789".repeat(400_000);

  constructor(options: Partial<HttpServerOptions> = {}) {
    this.server = new HttpServer({
      host: "127.0.0.1", port: 0, routes: this.routes(),
      fallback: ({ method, url }) => new Reply(`no ${method} ${url}`, { status: 404, headers: plain }),
      onError: (error) => void this.errors.push(error),
      ...options,
    });
  }

  client(): RawClient {
    return new RawClient(this.server.port);
  }

  /** What one connection is answered, up to its end. */
  ask(request: string | Buffer): Promise<string> {
    return this.client().write(request).untilOver();
  }

  private routes(): HttpServerOptions["routes"] {
    const cancel = (): void => this.cancelled.resolve();
    const whole = (text: string) => () => new Reply(text, { headers: plain });
    const streamed = (source: () => FrameSource) => () => new Reply(source(), { headers: plain });
    const endless = (): Promise<string> => {
      this.pulledFrames += 1;
      return Promise.resolve("x".repeat(65_536));
    };
    const read = (limitBytes: number) => async (request: IncomingRequest) =>
      whole(await readBodyText(request, limitBytes).then((text) => `<${text}>`, () => "refused"))();
    const cookies: [string, string][] = [["x-a", "1"], ["set-cookie", "a=1"], ["set-cookie", "b=2"]];
    return {
      "/echo": { POST: read(1_000_000) },
      "/narrow": { POST: read(10) },
      "/unread": { POST: whole("not read") },
      "/page": { GET: whole("a page") },
      "/large": { GET: whole(this.large) },
      "/things/:id": { GET: ({ params }) => whole(JSON.stringify(params))() },
      "/things/:id/parts": { GET: whole("parts") },
      "/response": { GET: () => new Response("bytes", { status: 201, headers: cookies }) },
      "/cookies": { GET: () => new Reply("", { status: 302, headers: { location: "/" }, cookies: ["a=1", "b=2"] }) },
      "/stream": { GET: streamed(() => frames(threeFrames)) },
      "/ready": { GET: streamed(readyFrames) },
      "/endless": { GET: streamed(() => ({ next: endless, cancel })) },
      "/silent": { GET: streamed(() => ({ next: () => new Promise(() => undefined), cancel })) },
      "/hold": { POST: (request) => this.hold(request) },
      "/throws-at-once": { GET() { throw new Error("a mistake"); } },
      "/breaks": { GET: streamed(() => ({ next: () => Promise.reject(new Error("a mistake")), cancel })) },
      "/throws": { GET: () => Promise.reject(new Error("a mistake")) },
      "/bad-header": { GET: () => new Reply("", { headers: { "x-a": "one\r\nx-b: two" } }) },
    };
  }

  private async hold({ signal }: IncomingRequest): Promise<Reply> {
    signal.addEventListener("abort", () => this.aborted.resolve());
    this.reached.resolve();
    await this.held.promise;
    return new Reply("held", { headers: plain });
  }
}

/** A request without a body; `more` are further header lines. */
export const get = (path: string, more = ""): string => `GET ${path} HTTP/1.1\r\nhost: a\r\n${more}\r\n`;

/** A request with a body whose length is told. */
export const post = (path: string, body: string, more = ""): string =>
  `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${more}\r\n${body}`;

/** The header line that ends a connection with its answer. */
export const closing = "connection: close\r\n";

/** Status and body of each answer, as they came. */
export const answersIn = (text: string): string[][] =>
  text.split("HTTP/1.1 ").slice(1).map((part) => [part.slice(0, 3), part.slice(part.indexOf("\r\n\r\n") + 4)]);

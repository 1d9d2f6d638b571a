import type { Gate } from "./gate.ts";

/** What marks the end of a body: chunks, its length in the head, or the end of the connection. */
export type Framing = "chunked" | "until-close" | { contentLength: number };

/** Status line and headers. */
export interface HeadStep {
  kind: "head";
  status: number;
  headers: Readonly<Record<string, string>>;
  framing: Framing;
}

/** Bytes of the body; where the framing is chunked, each write is a chunk. */
export interface BodyStep {
  kind: "body";
  bytes: Uint8Array;
}

/** Bytes written as they are, without framing. */
export interface RawStep {
  kind: "raw";
  bytes: Uint8Array;
}

/** The end of the body, as the framing marks it; with "until-close" the end of the connection. */
export interface EndStep {
  kind: "end";
}

/** A step that only writes bytes. */
export type WireStep = HeadStep | BodyStep | RawStep | EndStep;

/** Steps whose encoded bytes, taken together, are cut at these offsets; each piece is a write. */
export interface SplitStep {
  kind: "split";
  at: readonly number[] | "every-byte";
  steps: readonly WireStep[];
}

/** Closes the connection: in order (FIN), or with a reset (RST). */
export interface CloseStep {
  kind: "cut" | "reset";
}

/** Writes nothing more until the client leaves. */
export interface StallStep {
  kind: "stall";
}

export type Step = WireStep | SplitStep | CloseStep | StallStep | Gate;

/**
 * What an upstream does with one request, in order. Each write goes into its own segment. A script
 * that ends before its answer does is silent from then on; `[]` never answers.
 */
export type Script = readonly Step[];

export interface HeadOptions {
  status?: number;
  headers?: Record<string, string>;
  framing?: Framing;
}

/** Returns status line and headers; without options, the head of a chunked event stream. */
export const head = (options: HeadOptions = {}): HeadStep => ({
  kind: "head",
  status: options.status ?? 200,
  headers: { "content-type": "text/event-stream", ...options.headers },
  framing: options.framing ?? "chunked",
});

const bytesOf = (content: string | Uint8Array): Uint8Array =>
  typeof content === "string" ? Buffer.from(content) : content;

/** Returns bytes of the body, in one write. */
export const body = (content: string | Uint8Array): BodyStep => ({
  kind: "body",
  bytes: bytesOf(content),
});

/** Returns bytes of the body, cut at these offsets; each piece is a write. */
export function bodySplit(content: string | Uint8Array, at: readonly number[]): BodyStep[] {
  const bytes = bytesOf(content);
  const edges = [0, ...at, bytes.length];
  return edges
    .slice(1)
    .map((end, index) => ({ kind: "body", bytes: bytes.subarray(edges[index], end) }));
}

/** Returns bytes that are written as they are. */
export const raw = (content: string | Uint8Array): RawStep => ({
  kind: "raw",
  bytes: bytesOf(content),
});

/** Returns the end of the body. */
export const end = (): EndStep => ({ kind: "end" });

/** Closes the connection with a FIN, even in the middle of an answer. */
export const cut = (): CloseStep => ({ kind: "cut" });

/** Closes the connection with a RST. What the client has not read yet may be lost with it. */
export const reset = (): CloseStep => ({ kind: "reset" });

/** Writes nothing more until the client leaves. */
export const stall = (): StallStep => ({ kind: "stall" });

/** Cuts the encoded bytes of steps, head and chunk sizes included, at these offsets. */
export const split = (at: SplitStep["at"], steps: readonly WireStep[]): SplitStep => ({
  kind: "split",
  at,
  steps,
});

/** Returns one server-sent event: a value as JSON, or a text as it is. */
export function sse(
  data: unknown,
  { event, lineEnd = "\n" }: { event?: string; lineEnd?: string } = {},
): BodyStep {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  const name = event === undefined ? "" : `event: ${event}${lineEnd}`;
  return body(`${name}data: ${text}${lineEnd}${lineEnd}`);
}

export interface AnswerOptions {
  status?: number;
  headers?: Record<string, string>;
  /** Sends the body compressed. */
  gzip?: boolean;
}

/** Returns a whole answer with a JSON body. */
export const json = (value: unknown, options: AnswerOptions = {}): WireStep[] =>
  answer(JSON.stringify(value), {
    ...options,
    headers: { "content-type": "application/json", ...options.headers },
  });

/** Returns a whole answer with a body as it is, its length in the head. */
export function answer(
  content: string,
  { status = 200, headers = {}, gzip = false }: AnswerOptions = {},
): WireStep[] {
  const bytes = gzip ? Bun.gzipSync(content) : Buffer.from(content);
  const encoding = gzip ? { "content-encoding": "gzip" } : {};
  return [
    head({
      status,
      headers: { ...encoding, ...headers },
      framing: { contentLength: bytes.length },
    }),
    ...(bytes.length > 0 ? [body(bytes)] : []),
    end(),
  ];
}

/** Returns an event stream of ready-made events, one write each, that ends in order. */
export const stream = (events: readonly BodyStep[], options: HeadOptions = {}): WireStep[] => [
  head(options),
  ...events,
  end(),
];

/** Returns an event stream that is compressed as a whole, in one write. */
export function gzipStream(events: readonly BodyStep[]): WireStep[] {
  const plain = Buffer.concat(events.map((event) => event.bytes));
  return [head({ headers: { "content-encoding": "gzip" } }), body(Bun.gzipSync(plain)), end()];
}

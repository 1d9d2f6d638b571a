import type { ReadPrompt } from "./prompt.ts";
import type { Directives } from "./directives.ts";
import { setTimeout as wait } from "node:timers/promises";

/** An event of a stream in wire form. */
export interface WireEvent {
  wire: string;
  /** Whether it carries a piece of reasoning, text or tool arguments. */
  content: boolean;
}

/** Options of playing a stream. */
interface PlayOptions {
  directives: Directives;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
  /** Returns what the dialect sends when it fails after this many events, in wire form. */
  failure: (sentCount: number) => string;
}

/**
 * Yields the events of a stream at the pace and with the fault that the directives ask for. Ends
 * silently when the client disconnects; a cut is an exception, on which the server resets the
 * connection.
 */
export async function* play(
  events: Iterable<WireEvent>,
  options: PlayOptions,
): AsyncGenerator<string> {
  const { directives, signal, failure } = options;
  let sentCount = 0;
  let contentCount = 0;
  for (const event of events) {
    if (directives.cut_after === contentCount) await cutConnection();
    if (directives.stall_after === contentCount) await clientGone(signal);
    if (directives.error_after === contentCount) return yield failure(sentCount);
    if (event.content && directives.token_delay_ms) await waitMs(directives.token_delay_ms, signal);
    if (signal.aborted) return;
    yield event.wire;
    sentCount += 1;
    if (event.content) contentCount += 1;
  }
}

/** Waits. When the signal is aborted it returns at once and leaves no timer behind. */
export async function waitMs(durationMs: number, signal: AbortSignal): Promise<void> {
  await wait(durationMs, undefined, { signal }).catch(() => undefined);
}

/** Resolves when the client disconnects, and never before. */
export function clientGone(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
}

/**
 * Milliseconds that a cut lets the client read what was sent before: a reset discards unread data.
 */
const cutGraceMs = 20;

/** Throws what makes Bun reset the connection, once the client could read what was sent. */
export async function cutConnection(): Promise<never> {
  await wait(cutGraceMs);
  throw new DOMException("cut by a sandbox directive", "AbortError");
}

/** A tool call; `argumentTokens` joined is JSON, or free text when the tool is custom. */
export interface SimulatedCall {
  id: string;
  name: string;
  kind: "function" | "custom";
  argumentTokens: string[];
}

/** An answer, as its tokens. Reasoning comes first, then text or calls. */
export interface SimulatedChoice {
  reasoning: string[];
  text: string[];
  calls: SimulatedCall[];
  finish: "stop" | "length" | "tool_calls";
  /** The stop sequence that ended the text. */
  stopSequence: string | undefined;
}

/**
 * Token counts as a vendor reports them: cached tokens are part of the input, reasoning of the
 * output.
 */
export interface SimulatedUsage {
  inputTokens: number;
  cachedTokens: number;
  cacheWriteTokens: number;
  outputTokens: number;
  reasoningTokens: number;
}

/** A reply that every dialect encodes in its own form. A pure function of the request. */
export interface SimulatedReply {
  /** 16 hexadecimal digits that ids are made of. */
  seed: string;
  model: string;
  createdAtSeconds: number;
  /** At least one. */
  choices: SimulatedChoice[];
  /** Undefined when the prompt asks for an answer without usage. */
  usage: SimulatedUsage | undefined;
  directives: Directives;
}

/** Returns the tokens of a choice in the order in which a model generates them. */
export const choiceTokens = (choice: SimulatedChoice): string[] => [
  ...choice.reasoning,
  ...choice.text,
  ...choice.calls.flatMap((call) => call.argumentTokens),
];

/** The path parameters and query of a request. */
export interface RequestTarget {
  /** The model named by the path, in dialects that have it there. */
  pathModel: string;
  /** The text after the colon of the path, in dialects with an action there. */
  pathAction: string;
  query: URLSearchParams;
}

/** A generation request that a dialect has parsed, with the ways to answer it. */
export interface UnderstoodRequest {
  prompt: ReadPrompt;
  stream: boolean;
  /** Returns the body of a whole answer. */
  whole(reply: SimulatedReply): unknown;
  /** Returns the events of a streamed answer. */
  events(reply: SimulatedReply): Iterable<WireEvent>;
  /** Returns what ends a stream that fails after this many events. */
  failure(reply: SimulatedReply, sentCount: number): string;
}

/** A refusal as the caller reads it. */
export interface Refusal {
  /** The HTTP status, 400 to 599. */
  status: number;
  message: string;
  /** Identifies the request in the answer. */
  requestId: string;
}

/** A wire format that the sandbox speaks. */
export interface SandboxDialect {
  /** Reads the parsed JSON of a request. Throws a ZodError, a GatewayError or an InvalidRequestError. */
  read(body: unknown, target: RequestTarget): UnderstoodRequest;
  /** Returns an error body of the dialect. */
  refusal(refusal: Refusal): unknown;
}

/**
 * Thrown for a request that the dialect allows but the sandbox does not answer; `message` says why.
 */
export class InvalidRequestError extends Error {
  override name = "InvalidRequestError";
}

/** The message of a failure in the middle of an answer, in every dialect. */
export const failureMessage =
  "The sandbox failed in the middle of the answer, as a directive asked.";

/** Returns a server-sent event, named where the dialect names its events. */
export const sseEvent = (data: unknown, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;

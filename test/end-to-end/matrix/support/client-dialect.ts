import type { Fields } from "./json-value.ts";
import type { WireEvent } from "./wire-events.ts";

/** Dialects that clients speak. */
export type ClientName = "openai-chat" | "anthropic-messages" | "openai-responses";

/** A call of a tool as the client has it. */
interface SeenCall {
  id: string;
  name: string;
  /** JSON text, or the input of a custom tool as it is. */
  arguments: string;
}

/** Token counts in the words of no dialect; what is absent was not told. */
interface SeenUsage {
  /** All of the input, cached or not. */
  input: number;
  /** All of the output, thoughts included. */
  output: number;
  cached?: number;
  written?: number;
  reasoning?: number;
}

/** An error as the client has it. */
export interface SeenError {
  code: unknown;
  message: unknown;
  metadata: Fields;
}

/** What a client understands of an answer, in the words of no dialect. */
export interface Meaning {
  id: string;
  said: string;
  refused: string;
  thought: string;
  /** What has to come back with the thoughts: signatures and ciphertexts. */
  seals: readonly string[];
  calls: readonly SeenCall[];
  /**
   * stop, stop_sequence, length, tool_calls, content_filter or another word of its dialect;
   * undefined while it has not ended.
   */
  finish: string | undefined;
  usage: SeenUsage | undefined;
  costUsd: unknown;
}

/** What a stream adds up to. */
export interface ReadStream {
  /** The answer in its dialect's whole form. */
  body: Fields;
  errors: readonly SeenError[];
  /** How often it ended as whole answers do. */
  endings: number;
  /** Where it breaks the grammar of its dialect. */
  breaches: readonly string[];
  /** The gateway's own metadata. */
  metadata: unknown;
}

/** The names of all dialects that clients speak; Google's has its own requests in the tables of pairs. */
export type AnyClientName = ClientName | "google-generate";

/** Returns where a client sends a body, and the body without what the path says. */
export const addressOf = (client: ClientDialect, body: Fields): { path: string; body: Fields } =>
  client.address?.(body) ?? { path: client.path, body };

/** How a test speaks one dialect as its client. */
export interface ClientDialect<Name extends AnyClientName = AnyClientName> {
  name: Name;
  /** Path below the API's base. */
  path: string;
  /** Returns where a body is sent, and without what the path says; absent where `path` is enough. */
  address?(body: Fields): { path: string; body: Fields };
  /** The body of a request that says these words and allows for 300 tokens of output. */
  ask(text: string): Fields;
  /** Returns the members of a request that allow for so many tokens of output. */
  capped(tokens: number): Fields;
  /** Puts a whole answer in the words of no dialect. */
  mean(body: Fields): Meaning;
  /** The error of a body that is one; undefined otherwise. */
  errorOf(body: Fields): SeenError | undefined;
  /** Where an error body breaks its dialect's envelope. */
  envelopeBreaches(body: Fields): readonly string[];
  readStream(events: readonly WireEvent[]): ReadStream;
}

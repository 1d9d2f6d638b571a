import type { Loss } from "../../../canonical/request.ts";
import type { MeteredUsage, ModelFallback } from "../../../canonical/response.ts";
import type { GatewayError } from "../../../../platform/kernel/errors.ts";
import type { Frames } from "../../../../platform/kernel/frame-source.ts";

/** A server-sent event: its `event:` name, where it had one, and its data. */
export interface SseEvent {
  event?: string;
  data: string;
}

/**
 * The text that events are read from. A relay that recognises events by their text may take them
 * here, and then moves the position behind them.
 */
export interface EventText {
  /** Whole lines, each ended by a line feed. */
  readonly text: string;
  /** The index of the first character that was not taken. */
  position: number;
  /** Whether no event has been read in part before the position. */
  readonly isBetween: boolean;
}

/** The texts of events that are taken without being decoded, for one that counts them. */
export interface CountedTexts {
  /** The most characters that may be taken, less those that were noted. */
  readonly charactersMax: number;
  /** Notes what was taken. */
  note(text: string, said: { isThought: boolean }): void;
}

/** The options of a relay. */
export interface RelayOptions {
  /** The id and catalog model that the client sees; the id has its dialect's prefix. */
  shown: { id: string; model: string };
  /** The estimated input tokens, for a provider that reports no usage. */
  inputTokens: number;
  /** The model's context window, beyond which reported usage is not trusted. */
  windowTokens: number;
  fallback: ModelFallback | undefined;
  /**
   * Charges the present result of `metered()` and resolves when the charge is durable. Only the
   * first call charges; later ones get the same promise. Only what was settled may be shown as
   * cost.
   */
  settle(): Promise<{ chargedNano: bigint; isByok?: boolean }>;
  /** Returns the JSON text of `service_metadata`; to be called after `settle`. */
  metadataText(): string;
}

/**
 * Relays one upstream's events as one client's frames, for one stream. Frames are whole SSE text;
 * an empty string means none yet. A relay throws `StreamFault` for failures of its upstream, after
 * which only `fail` returns further frames.
 */
export interface StreamRelay {
  /**
   * Takes events from the text itself and returns their frames, as `accept` would for each; an
   * empty string where the next is for `accept`. With `texts`, only what those allow.
   */
  acceptAlike?(events: EventText, texts?: CountedTexts): string;
  /**
   * Returns the frames of an event. Only the event that ends the stream returns a promise, since it
   * waits for the settlement; every event of every stream passes here, so others create none
   * (decision 0038).
   */
  accept(event: SseEvent): string | Promise<string>;
  /**
   * Ends a stream whose connection closed before a terminal event: closes what is complete. Throws
   * `StreamFault` where the answer was cut (malformed) or had no content (empty answer).
   */
  finish(): Promise<string>;
  /**
   * Ends the stream as an answer that has reached its limit: what has come is kept, and nothing
   * more is read from its upstream.
   */
  endAtCap(): Promise<string>;
  /**
   * Returns the frames that end the stream with an error in the client's dialect, consistent with
   * what the client has received.
   */
  fail(error: GatewayError): string;
  /** Notes that the client has left before the end, where that changes what was consumed. */
  leave?(): void;
  /**
   * Returns what was consumed so far: the provider's count, bounded by the model's window, or an
   * estimate.
   */
  metered(): MeteredUsage;
  /** Characters of all content so far. */
  readonly outputCharacters: number;
  /** Whether the terminal frames were returned, so that nothing follows. */
  readonly ended: boolean;
  /** Whether anything has come that a client could show or act on. */
  readonly hasContent: boolean;
  /** Whether every choice has finished, so that only the upstream's own end is awaited. */
  readonly finished: boolean;
  readonly finishReason: string | null;
  readonly upstreamId: string | null;
  /**
   * The parts of the answer so far that the client's dialect could not carry; absent where the
   * bytes are kept.
   */
  readonly losses?: readonly Loss[];
  /** The frame that is sent while the upstream is silent; never within an event. */
  readonly pingFrame: string;
  /**
   * The long base64 that is not in the text of frames, which have a marker in its place; absent
   * where all of it is.
   */
  readonly aside?: BytesOfFrames | undefined;
}

/** The long base64 of a stream. */
interface BytesOfFrames {
  /** Whether there was none so far, so that frames have no markers. */
  readonly isEmpty: boolean;
  /** Bytes that are kept. */
  readonly size: number;
  /**
   * Returns the text of the pieces of an event, with markers for its long base64; undefined where it
   * has none.
   */
  textWithout(pieces: readonly Uint8Array[]): string | undefined;
  /** Returns frames with their base64, which is let go unless it may be shown again. */
  restore(frames: string): Frames;
  /** Returns the same as one text, and lets nothing go. */
  textOf(frames: string): string;
}

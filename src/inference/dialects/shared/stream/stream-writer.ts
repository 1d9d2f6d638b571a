import type { GatewayError } from "../../../../platform/kernel/errors.ts";
import type { Loss } from "../../../canonical/request.ts";
import type { SpokenPart, StreamPart } from "../../../canonical/response.ts";
import type { SseEvent } from "./stream-relay.ts";

/** What the client was sent of an event. */
export interface ShownEvent {
  frame: string;
  /** Whether the text was written again, so that its escapes may differ from the upstream's. */
  isRewritten: boolean;
}

/**
 * Writes one stream for its client: keeps the upstream's bytes with declared touch-ups, or writes
 * another dialect.
 */
export interface StreamWriter {
  /** The frame that is sent while the upstream is silent; never within an event. */
  readonly pingFrame: string;
  /** The finish reason as the upstream wrote it; absent where the canonical one is recorded. */
  readonly finishReason?: string | null;
  /** What the client's dialect could not carry so far; absent where the bytes are kept. */
  readonly losses?: readonly Loss[];
  /**
   * Returns the frames of an event, which was read as these parts; without an event those of parts
   * that no event carried. Returns a promise only for the event with the charge.
   */
  write(parts: readonly StreamPart[], event?: SseEvent): string | Promise<string>;
  /** Returns the frames of a text that was not decoded; absent where bytes are kept. */
  writeText?(part: SpokenPart): string;
  /**
   * Returns what the client was sent of the latest event, from which similar ones are written;
   * undefined where that cannot be said. Absent where each text is written again.
   */
  latestShown?(): ShownEvent | undefined;
  /** The number that the next event has to have; absent where events have none. */
  readonly nextNumber?: number;
  /** Whether what the latest event contains may be written again; absent means never. */
  readonly repeatsLatest?: boolean;
  /** Notes events that are like the latest one, and whose bytes were kept. */
  noteRun?(run: { count: number }): void;
  /** Charges, and returns the frames that end a complete stream. */
  end(): Promise<string>;
  /** Returns the frames that end a stream with an error. */
  fail(error: GatewayError): string;
}

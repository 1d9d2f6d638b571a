import type { GatewayError } from "../platform/lib/errors.ts";
import type { Loss } from "./canonical/loss.ts";
import type { MeteredUsage } from "./canonical/usage.ts";
import type { StreamRelay } from "./interpret/interpretation.ts";
import type { StreamAllowance } from "./stream-allowance.ts";
import type { KeepAliveTicker } from "./keep-alive.ts";
import type { Settled } from "./settle.ts";
import type { AttemptFailure } from "./upstream/classify-failure.ts";
import type { EventDecoder } from "./upstream/event-reader.ts";
import type { UpstreamResponse } from "./upstream/upstream-client.ts";

/** How a stream ended, for its settlement. */
export type StreamEnd = "completed" | "cut" | "cancelled";

/** What a stream's settlement is told of its end. */
export interface EndedStream {
  status: StreamEnd;
  finishReason: string | null;
  upstreamId: string | null;
  /** What the client's dialect could not carry of the answer. */
  answerLosses: readonly Loss[];
}

/** What a relay is given beside what it is made of: see `RelayOptions`. */
export interface RelayServices {
  settle(): Promise<Settled>;
  metadataText(): string;
}

/** What a stream is made of, and whom it tells. */
export interface RelayedStreamOptions {
  response: UpstreamResponse;
  /** Finds the events in the bytes, where they are no server-sent events. */
  decoder: EventDecoder | undefined;
  /** Makes the relay between the two dialects. */
  relay(services: RelayServices): StreamRelay;
  drainOnCancel: boolean;
  keepAlive: KeepAliveTicker;
  /** Says of each event whether what is held pays for it; absent where it does for all that can come. */
  allowance?: Pick<StreamAllowance, "next"> | undefined;
  /** Told once, when the first content has come. */
  onFirstContent(): void;
  /** Settles what was metered; called at most once. */
  settle(metered: MeteredUsage, end: EndedStream): Promise<Settled>;
  /** JSON text of `service_metadata` for the final frame; `answerLosses` are what the client's dialect could not carry of the answer. */
  metadataText(settled: Settled, answerLosses: readonly Loss[]): string;
  /** What the client is told of a failure. */
  asError(failure: AttemptFailure | unknown): GatewayError;
  onClosed(): void;
}

/** What a stream that was cancelled came to. */
export interface AbandonedStream {
  /** The frames that end it, with everything that was delivered. */
  frames: string;
  metered: MeteredUsage;
  settled: Settled;
  /** JSON text of `service_metadata`. */
  metadataText: string;
}

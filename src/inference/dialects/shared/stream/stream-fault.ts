import type { MeteredUsage } from "../../../canonical/response.ts";

/** An error as a stream reports it. */
export interface ReportedDetails {
  message?: unknown;
  code?: unknown;
  type?: unknown;
  status?: unknown;
  /** Anthropic's object of further facts. */
  details?: unknown;
}

/** The failure of a stream: without content, malformed in its dialect, or a reported error. */
export type StreamBreak =
  | { kind: "empty" }
  | { kind: "malformed"; observation: string }
  | {
      kind: "reported";
      details: ReportedDetails;
      /** The usage that the provider reported for an answer at which the model failed. */
      consumed?: MeteredUsage;
    };

/** A failure in a stream's events, as opposed to one of its transport. */
export class StreamFault extends Error {
  constructor(readonly fault: StreamBreak) {
    super(fault.kind);
  }
}

/** Returns the fault of a stream that ended without content. */
export const emptyStream = (): StreamFault => new StreamFault({ kind: "empty" });

/** Returns the fault of a stream that its dialect cannot read. */
export const malformedStream = (observation: string): StreamFault =>
  new StreamFault({ kind: "malformed", observation });

/** Returns the fault of a stream that ended before its answer was finished. */
export const unfinishedStream = (): StreamFault =>
  malformedStream("the stream ended before the answer was finished");

/** Returns the fault that a provider reported in one of its events. */
export const reportedFault = (details: ReportedDetails, consumed?: MeteredUsage): StreamFault =>
  new StreamFault({ kind: "reported", details, ...(consumed && { consumed }) });

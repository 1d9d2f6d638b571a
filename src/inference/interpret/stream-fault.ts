import {
  classifyStatus,
  classifyTransport,
  malformedAnswer,
  statusOfErrorObject,
  type AttemptFailure,
} from "../upstream/classify-failure.ts";
import type { MeteredUsage } from "../canonical/usage.ts";
import { UpstreamFailure } from "../upstream/upstream-failure.ts";

/** A failed attempt, judged, with what it used all the same. */
export interface FailureWithUsage extends AttemptFailure {
  /** What the provider counted for an answer that the model failed at; absent where nothing was generated. */
  consumed?: MeteredUsage;
}

/** A failure that was found in a stream's events, as opposed to one of its transport. */
export class StreamFault extends Error {
  readonly failure: FailureWithUsage;

  constructor(failure: FailureWithUsage) {
    super(failure.upstreamMessage ?? failure.observation ?? failure.code);
    this.failure = failure;
  }
}

/** An error as a stream tells of it. */
export interface ReportedDetails {
  message?: unknown;
  code?: unknown;
  type?: unknown;
  status?: unknown;
}

/** The fault that a provider reported in one of its events, with what it counted for an answer that the model failed at. */
export const reportedFault = (details: ReportedDetails, consumed?: MeteredUsage): StreamFault =>
  new StreamFault({
    ...classifyStatus({
      status: statusOfErrorObject(details),
      message: typeof details.message === "string" ? details.message : null,
      upstreamCode: typeof details.code === "string" ? details.code : null,
      upstreamError: typeof details.code === "string" ? { code: details.code } : null,
      retryAfter: undefined,
    }),
    ...(consumed && { consumed }),
  });

/** The judgement of anything that a stream can break with; faults of our own are passed on. */
export function failureOf(error: unknown, status: number): FailureWithUsage {
  if (error instanceof StreamFault) return error.failure;
  if (error instanceof UpstreamFailure) return classifyTransport(error, status);
  if (error instanceof RangeError)
    return malformedAnswer(status, "an event of the stream is too large");
  // Members of the event are read from its text, and this one was no object.
  if (error instanceof SyntaxError)
    return malformedAnswer(status, "an event of the stream has another shape than its dialect's");
  throw error;
}

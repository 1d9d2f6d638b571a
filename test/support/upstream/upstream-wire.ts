import type { BodyStep } from "./steps.ts";

/** A good answer in one upstream dialect, divided at the points where faults occur. */
export interface UpstreamWire {
  /** Name of the dialect. */
  dialect: string;
  /** Events that come before any content. */
  opening: readonly BodyStep[];
  /** Events of content, at least three; together they say `fixtureText`. */
  content: readonly BodyStep[];
  /** Events that say why the answer ended and what it used. */
  finish: readonly BodyStep[];
  /** Events after the finish; empty in dialects whose finish is the end. */
  terminator: readonly BodyStep[];
  /** Events by which the dialect reports a failure inside a stream. */
  failure: readonly BodyStep[];
  /** The body of the same answer as a whole. */
  whole: unknown;
  /** Returns the body of an HTTP error. */
  errorBody(status: number): unknown;
}

/** Returns all events of the good answer. */
export const wireEvents = (wire: UpstreamWire): BodyStep[] => [
  ...wire.opening,
  ...wire.content,
  ...wire.finish,
  ...wire.terminator,
];

/**
 * A bug of the gateway, as opposed to a caller's mistake: answered as 500 with a trace id, and
 * logged with its cause.
 */
export class AssertionError extends Error {
  override name = "AssertionError";
}

/** Throws when a condition that the code relies on does not hold. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** What a caller's `traceparent` header says. */
export interface TraceParent {
  /** 32 lower-case hexadecimal digits. */
  traceId: string;
  /** 16 lower-case hexadecimal digits. */
  spanId: string;
  sampled: boolean;
}

const pattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Parses a `traceparent` header (W3C Trace Context, section 3.2); undefined when it is invalid: version ff, an id of
 * zeros, capitals, or more fields than version 00 has.
 */
export function parseTraceParent(header: string | null | undefined): TraceParent | undefined {
  const match = pattern.exec(header?.trim() ?? "");
  if (match === null) return undefined;
  const [, version, traceId = "", spanId = "", flags = "00", rest] = match;
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

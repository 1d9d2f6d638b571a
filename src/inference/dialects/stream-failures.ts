import type { JsonObject } from "../canonical/json.ts";
import type { ErrorPart } from "../canonical/stream-part.ts";
import { asObject } from "./request-fields.ts";

/** The connection ended before the answer did. */
export const cutStream: ErrorPart = {
  type: "error",
  fault: "cut",
  error: {
    message: "The provider closed the stream before the answer was finished.",
    code: "upstream_error",
    type: "upstream_error",
  },
};

/** An event could not be read. */
export const malformedEvent: ErrorPart = {
  type: "error",
  fault: "malformed",
  error: {
    message: "The provider sent a stream event that is no valid JSON.",
    code: "upstream_error",
    type: "upstream_error",
  },
};

const brace = 0x7b;

/** The data of an event without white space around it; that of nearly all events is an object and has none before it. */
export const trimmed = (data: string): string =>
  data.charCodeAt(0) === brace ? data : data.trim();

/** Whether data begins as an object does, or as a list of them. */
export const looksLikeObject = (data: string): boolean =>
  data.charCodeAt(0) === brace || /^\[\s*\{/.test(data);

/** The object that an event's data holds, or the first of a list; undefined when it holds none. */
export function parseEventObject(data: string): JsonObject | undefined {
  try {
    const parsed: unknown = JSON.parse(data);
    return asObject(Array.isArray(parsed) ? parsed[0] : parsed);
  } catch {
    return undefined;
  }
}

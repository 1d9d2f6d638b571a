import { createParser } from "eventsource-parser";
import { fieldsOf, parsed, type Fields } from "./json-value.ts";

/** One event of a stream as its client has it. */
export interface WireEvent {
  /** Its `event:` line; undefined without one. */
  name: string | undefined;
  /** Its `id:` line. */
  id: string | undefined;
  /** The data as it came. */
  text: string;
  /** The data as an object; empty where it is none. */
  data: Fields;
}

/**
 * The events of a stream's text and its comments, by a parser that shares nothing with the
 * gateway's own.
 */
export function readEvents(raw: string): { events: WireEvent[]; comments: string[] } {
  const events: WireEvent[] = [];
  const comments: string[] = [];
  const parser = createParser({
    onEvent: ({ event, data, id }) =>
      void events.push({ name: event, id, text: data, data: fieldsOf(parsed(data)) }),
    onComment: (comment) => void comments.push(comment),
  });
  parser.feed(raw);
  return { events, comments };
}

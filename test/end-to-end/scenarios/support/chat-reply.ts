import { createParser } from "eventsource-parser";
import { at } from "./at.ts";

/** A chat answer as a client has it, streamed or whole. */
export interface ChatReply {
  status: number;
  headers: Headers;
  /** The body as it came. */
  raw: string;
  /** Events of a stream without `[DONE]`; the one body of a whole answer. */
  events: readonly unknown[];
  /** How often `[DONE]` came. */
  doneCount: number;
  comments: readonly string[];
}

/** Reads an answer to its end, with a parser that shares nothing with the gateway's own. */
export async function readReply(response: Response): Promise<ChatReply> {
  const raw = await response.text();
  const { status, headers } = response;
  if (!headers.get("content-type")?.startsWith("text/event-stream")) {
    return { status, headers, raw, events: [JSON.parse(raw)], doneCount: 0, comments: [] };
  }
  return { status, headers, raw, ...parseEvents(raw) };
}

/** The events of a stream's text. */
export function parseEvents(raw: string): Pick<ChatReply, "events" | "doneCount" | "comments"> {
  const events: unknown[] = [];
  const comments: string[] = [];
  let doneCount = 0;
  const parser = createParser({
    onEvent({ data }) {
      if (data === "[DONE]") doneCount += 1;
      else events.push(JSON.parse(data));
    },
    onComment: (comment) => void comments.push(comment),
  });
  parser.feed(raw);
  return { events, doneCount, comments };
}

const textOf = (event: unknown): string => {
  const text = at(event, "choices.0.delta.content") ?? at(event, "choices.0.message.content");
  return typeof text === "string" ? text : "";
};

/** What the model said. */
export const saidIn = ({ events }: Pick<ChatReply, "events">): string =>
  events.map(textOf).join("");

/** Returns every error that the answer reports. */
export const errorsIn = ({ events }: ChatReply): unknown[] =>
  events.map((event) => at(event, "error")).filter(Boolean);

/** Every charge that the answer shows, in USD. */
export const costsIn = ({ events }: ChatReply): unknown[] =>
  events.map((event) => at(event, "usage.cost")).filter((cost) => cost !== undefined);

/** Every finish reason that the answer gives. */
export const finishesIn = ({ events }: ChatReply): unknown[] =>
  events.map((event) => at(event, "choices.0.finish_reason")).filter(Boolean);

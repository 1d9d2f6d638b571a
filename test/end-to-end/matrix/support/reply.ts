import type { ClientDialect, Meaning, SeenError } from "./client-dialect.ts";
import { fieldsOf, parsed, type Fields } from "./json-value.ts";
import { readEvents } from "./wire-events.ts";

/** An answer as a client of some dialect has it, whole or streamed. */
export interface Reply extends Meaning {
  status: number;
  headers: Headers;
  /** The body as it came. */
  raw: string;
  streamed: boolean;
  /** The answer in its dialect's whole form. */
  body: Fields;
  errors: readonly SeenError[];
  /** How often it ended as whole answers do; 1 for one whole body without an error. */
  endings: number;
  /** Where it breaks the grammar of its dialect. */
  breaches: readonly string[];
  comments: readonly string[];
}

/** Reads an answer to its end. */
export async function readReply(client: ClientDialect, response: Response): Promise<Reply> {
  const raw = await response.text();
  const { status, headers } = response;
  const streamed = headers.get("content-type")?.startsWith("text/event-stream") ?? false;
  return { status, headers, ...(streamed ? readStreamed(client, raw) : readWhole(client, raw)) };
}

type Read = Omit<Reply, "status" | "headers">;

/** Reads the text of a stream. */
export function readStreamed(client: ClientDialect, raw: string): Read {
  const { events, comments } = readEvents(raw);
  const { body, errors, endings, breaches } = client.readStream(events);
  return { raw, streamed: true, ...client.mean(body), body, errors, endings, breaches, comments };
}

function readWhole(client: ClientDialect, raw: string): Read {
  const body = fieldsOf(parsed(raw));
  const error = client.errorOf(body);
  const breaches = error === undefined ? [] : client.envelopeBreaches(body);
  const endings = error === undefined ? 1 : 0;
  return {
    raw,
    streamed: false,
    ...client.mean(body),
    body,
    errors: error === undefined ? [] : [error],
    endings,
    breaches,
    comments: [],
  };
}

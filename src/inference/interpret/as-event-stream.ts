import { UpstreamFailure } from "../upstream/upstream-failure.ts";
import type { UpstreamResponse } from "../upstream/upstream-client.ts";

/** Bytes that a whole answer may have which comes in place of a stream. */
const wholeAnswerBytesMax = 64 * 1024 * 1024;

/** A whole body of an upstream's dialect as the event stream that says the same. */
export type EventsOfWhole = (text: string) => string;

/**
 * The answer to a request for a stream, as one. Some servers answer with a whole completion or with
 * an error as JSON all the same: that is told again as events (litellm#25492). What is labelled or
 * begins as a stream goes through as it comes.
 */
export function asEventStream(
  response: UpstreamResponse,
  eventsOf: EventsOfWhole,
): UpstreamResponse {
  if (/^text\/event-stream/i.test(response.headers["content-type"] ?? "")) return response;
  const next = eventBytes(response, eventsOf);
  return {
    status: response.status,
    headers: response.headers,
    next,
    readText: (limitBytes) => response.readText(limitBytes),
    markContent: () => response.markContent(),
    expectEnd: () => response.expectEnd(),
    abort: () => response.abort(),
  };
}

function eventBytes(
  response: UpstreamResponse,
  eventsOf: EventsOfWhole,
): () => Promise<Uint8Array | undefined> {
  let started = false;
  return async () => {
    if (started) return response.next();
    started = true;
    const head: Uint8Array[] = [];
    for (let chunk = await response.next(); chunk !== undefined; chunk = await response.next()) {
      head.push(chunk);
      const text = Buffer.concat(head).toString("utf8").trimStart();
      if (text === "" || text === "\uFEFF") continue;
      return /^[{[]/.test(text)
        ? Buffer.from(eventsOf(await readRest(response, head)))
        : Buffer.concat(head);
    }
    return undefined;
  };
}

async function readRest(response: UpstreamResponse, head: Uint8Array[]): Promise<string> {
  let size = 0;
  for (let chunk = await response.next(); chunk !== undefined; chunk = await response.next()) {
    size += chunk.byteLength;
    if (size > wholeAnswerBytesMax) {
      throw new UpstreamFailure(
        "response_too_large",
        `the answer is larger than ${wholeAnswerBytesMax} bytes`,
        { sent: true },
      );
    }
    head.push(chunk);
  }
  return Buffer.concat(head).toString("utf8");
}

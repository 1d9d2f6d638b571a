import { UpstreamFailure } from "./upstream/upstream-failure.ts";
import type { UpstreamResponse } from "./upstream/upstream-client.ts";

/** Bytes that a whole answer may have which comes in place of a stream. */
const wholeAnswerBytesMax = 64 * 1024 * 1024;

/**
 * The answer to a request for a stream, as one. Some servers answer with a whole completion or with
 * an error as JSON all the same: that is told again as events (litellm#25492). What is labelled or
 * begins as a stream goes through as it comes.
 */
export function asEventStream(response: UpstreamResponse): UpstreamResponse {
  if (/^text\/event-stream/i.test(response.headers["content-type"] ?? "")) return response;
  const next = eventBytes(response);
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

function eventBytes(response: UpstreamResponse): () => Promise<Uint8Array | undefined> {
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

interface WholeChoice {
  message?: { tool_calls?: unknown };
  finish_reason?: unknown;
}

/**
 * Events that say what a JSON body says; what cannot be read becomes an event that cannot be read
 * either.
 */
function eventsOf(text: string): string {
  let body: unknown;
  try {
    const parsed: unknown = JSON.parse(text);
    body = Array.isArray(parsed) ? parsed[0] : parsed;
  } catch {
    return `data: ${text.replace(/[\r\n]+/g, " ").trimStart()}\n\n`;
  }
  const { choices, usage, ...envelope } = Object(body) as {
    choices?: unknown;
    usage?: unknown;
  } & Record<string, unknown>;
  if (!Array.isArray(choices)) return event(body);
  const chunk = { ...envelope, object: "chat.completion.chunk" };
  const whole = choices.map((choice) => Object(choice) as WholeChoice);
  const deltas = whole.map(({ message, ...choice }, index) => ({
    index,
    ...choice,
    delta: deltaOf(message),
    finish_reason: null,
  }));
  const finishes = whole.map(({ message: _, finish_reason: reason, ...choice }, index) => ({
    index,
    ...choice,
    delta: {},
    finish_reason: reason,
  }));
  const usageEvent = usage === undefined ? "" : event({ ...chunk, choices: [], usage });
  return `${event({ ...chunk, choices: deltas })}${event({ ...chunk, choices: finishes })}${usageEvent}data: [DONE]\n\n`;
}

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

/**
 * A message as the one delta that says it all; tool calls get the index that streams number them
 * by.
 */
function deltaOf(message: WholeChoice["message"]): unknown {
  const calls = message?.tool_calls;
  if (!Array.isArray(calls)) return message ?? {};
  return { ...message, tool_calls: calls.map((call, index) => ({ index, ...Object(call) })) };
}

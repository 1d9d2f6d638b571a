import type { DialectId } from "../canonical/dialect-id.ts";
import { ResponseAssembler } from "../canonical/response-assembler.ts";
import { responseParts } from "../canonical/response-parts.ts";
import type { ClientDialect, UpstreamDialect } from "../dialects/dialect.ts";
import { SseDecoder } from "../upstream/sse-decoder.ts";
import { clientDialects, upstreamDialects } from "./dialects.ts";
import type { ToldAnswer, UpstreamHabits } from "./interpretation.ts";
import { eventsOfCompletion } from "./openai-chat/events-of-completion.ts";

/** Whether an answer that should be one JSON object begins as an event stream instead. */
export const looksLikeEvents = (text: string): boolean =>
  /^\uFEFF?\s*(?:data|event|id|retry)?:/.test(text);

/**
 * The whole answer that a stream adds up to, for a server that streams although nobody asked it to; in
 * the dialect of the server.
 */
function wholeOfEvents(dialect: DialectId, text: string): ToldAnswer {
  const client = clientDialects[dialect];
  const sse = new SseDecoder();
  const decoder = upstreamDialects[dialect].createStreamDecoder();
  const assembler = new ResponseAssembler();
  const events = [...sse.push(Buffer.from(text)), ...sse.end()];
  for (const part of [...events.flatMap((event) => decoder.decode(event)), ...decoder.end()])
    assembler.add(part);
  if (assembler.error !== undefined) return { ok: false, error: assembler.error };
  // Gemini's answers are lists of chunks as well; see `eventsOfChunks`.
  if (client === undefined) {
    const chunks = events.map(({ data }) => data).filter((data) => data.startsWith("{"));
    return { ok: true, text: `[${chunks.join(",")}]` };
  }
  return { ok: true, text: JSON.stringify(client.encodeResponse(assembler.response())) };
}

/** The events that a whole answer says, for a server that does not stream although it was asked to. */
function eventsOfWhole(dialect: DialectId, text: string): string {
  if (dialect === "openai-chat") return eventsOfCompletion(text);
  const oneLine = text.replace(/[\r\n]+/g, " ").trim();
  const client = clientDialects[dialect];
  // Gemini's whole answer has the shape of a chunk, and its stream without `alt=sse` is an array of them.
  if (client === undefined) return eventsOfChunks(oneLine);
  return eventsByCodec(oneLine, { client, upstream: upstreamDialects[dialect] });
}

function eventsOfChunks(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text);
    return (Array.isArray(parsed) ? parsed : [parsed])
      .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
      .join("");
  } catch {
    return `data: ${text}\n\n`;
  }
}

/** What is no answer becomes an event as it is: an error says what it is, and what cannot be read cannot be read either. */
function eventsByCodec(
  text: string,
  { client, upstream }: { client: ClientDialect; upstream: UpstreamDialect },
): string {
  try {
    const body: unknown = JSON.parse(text);
    const { type } = Object(body) as { type?: unknown };
    if (type === "error") return `event: error\ndata: ${text}\n\n`;
    const encoder = client.createStreamEncoder();
    return responseParts(upstream.decodeResponse(body))
      .flatMap((part) => encoder.encode(part))
      .join("");
  } catch {
    return `event: error\ndata: ${text}\n\n`;
  }
}

/** The status that Gemini means: it answers 400 to a wrong key, among others. */
function meantByGemini(status: number, text: string): number {
  try {
    return upstreamDialects["google-generate"].readError(status, JSON.parse(text)).status ?? status;
  } catch (error) {
    if (error instanceof SyntaxError) return status;
    throw error;
  }
}

const habitsIn = (dialect: DialectId): UpstreamHabits => ({
  wholeOfEvents: (text) => wholeOfEvents(dialect, text),
  eventsOfWhole: (text) => eventsOfWhole(dialect, text),
});

/** What upstreams of each chat dialect may do. */
export const chatHabits: Readonly<Record<DialectId, UpstreamHabits>> = {
  "openai-chat": habitsIn("openai-chat"),
  "anthropic-messages": habitsIn("anthropic-messages"),
  "openai-responses": habitsIn("openai-responses"),
  "google-generate": { ...habitsIn("google-generate"), meantStatus: meantByGemini },
};

import { ResponseAssembler } from "./canonical/response-assembler.ts";
import type { ErrorPart } from "./canonical/stream-part.ts";
import { openaiChat } from "./dialects/openai-chat/openai-chat.ts";
import { SseDecoder } from "./upstream/sse-decoder.ts";

/** A completion that was told as events, or the error that ended it. */
export type ToldCompletion = { ok: true; text: string } | { ok: false; error: ErrorPart };

/** Whether an answer that should be one JSON object begins as an event stream instead. */
export const looksLikeEvents = (text: string): boolean =>
  /^\uFEFF?\s*(?:data|event|id|retry)?:/.test(text);

/**
 * The whole completion that a chat stream adds up to, for a server that streams although nobody
 * asked it to.
 */
export function completionOfEvents(text: string): ToldCompletion {
  const sse = new SseDecoder();
  const decoder = openaiChat.createStreamDecoder();
  const assembler = new ResponseAssembler();
  const parts = [...sse.push(Buffer.from(text)), ...sse.end()].flatMap((event) =>
    decoder.decode(event),
  );
  for (const part of [...parts, ...decoder.end()]) assembler.add(part);
  if (assembler.error !== undefined) return { ok: false, error: assembler.error };
  return { ok: true, text: JSON.stringify(openaiChat.encodeResponse(assembler.response())) };
}

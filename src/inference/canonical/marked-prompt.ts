import { splitLeadingSystem, type CacheMarker, type Message } from "./message.ts";
import type { CanonicalRequest } from "./request.ts";

const marker: CacheMarker = {};

/**
 * Returns the request with cache markers where it asks for a prompt cache by a key alone: at the end
 * of its instructions, which other conversations have too, and at the end of the last message to the
 * model. OpenAI caches a prompt without markers, and Claude only what is marked. The same request
 * where it has no key, or markers of its own.
 */
export function withMarkedPrompt(request: CanonicalRequest): CanonicalRequest {
  const { promptCaching, messages, tools = [] } = request;
  if (promptCaching?.key === undefined) return request;
  if (messages.some(isMarked) || tools.some((tool) => "cache" in tool)) return request;
  const instructions = splitLeadingSystem(messages).leading.length - 1;
  const last = messages.findLastIndex(({ role }) => role === "user" || role === "tool");
  const marked = messages.map((message, index) =>
    index === instructions || index === last ? markedAtEnd(message) : message,
  );
  return { ...request, messages: marked };
}

const isMarked = (message: Message): boolean =>
  "cache" in message || message.parts.some((part) => "cache" in part);

/** Returns a message with a marker at its end; the same one where its last part takes none. */
function markedAtEnd(message: Message): Message {
  if (message.role === "tool") return { ...message, cache: marker };
  const last = message.parts.at(-1);
  if (last === undefined || last.type === "opaque") return message;
  const parts = [...message.parts.slice(0, -1), { ...last, cache: marker }];
  return { ...message, parts } as Message;
}

import type { DialectId } from "./canonical/dialect-id.ts";
import type { CanonicalRequest } from "./canonical/request.ts";
import { assertServesChat, chatAsks } from "./chat-asks.ts";
import type { CallOrigin, ChatCall } from "./inference-call.ts";
import { interpret } from "./interpret/interpret.ts";
import type { ClientRequest } from "./interpret/interpretation.ts";

/** A chat-shaped request as its route has read it. */
export interface ReadChat extends Pick<ClientRequest, "text" | "body" | "dialectHeaders" | "signatures" | "nowSeconds"> {
  dialect: DialectId;
  decode(body: Readonly<Record<string, unknown>>): CanonicalRequest;
}

/** What chat-shaped surfaces are called in records. */
const recordedNames: Record<DialectId, string> = {
  "openai-chat": "chat", "anthropic-messages": "messages", "openai-responses": "responses", "google-generate": "chat",
};

/** The call of a chat-shaped request. */
export function chatCall(origin: CallOrigin, { decode, ...read }: ReadChat): ChatCall {
  let canonical: CanonicalRequest | undefined;
  const request: ClientRequest = {
    ...read, traceId: origin.traceId, canonical: () => (canonical ??= decode(read.body)),
  };
  return {
    ...origin, ...request,
    surface: "chat",
    recordedAs: recordedNames[read.dialect],
    asks: chatAsks(request),
    interpret: (route) => interpret(request, route),
    assertServes: assertServesChat,
  };
}

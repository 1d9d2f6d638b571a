import type { DialectId } from "./canonical/dialect-id.ts";
import type { CanonicalRequest } from "./canonical/request.ts";
import { assertServesChat, chatAsks } from "./chat-asks.ts";
import type { CallOrigin, ChatCall } from "./inference-call.ts";
import { interpret } from "./interpret/interpret.ts";
import type { ClientRequest } from "./interpret/interpretation.ts";

/** A chat-shaped request as its route has read it. */
export interface ReadChat
  extends Pick<ClientRequest, "text" | "body" | "dialectHeaders" | "signatures" | "nowSeconds"> {
  dialect: DialectId;
  decode(body: Readonly<Record<string, unknown>>): CanonicalRequest;
}

/** What chat-shaped surfaces are called in records. */
const recordedNames: Record<DialectId, string> = {
  "openai-chat": "chat",
  "anthropic-messages": "messages",
  "openai-responses": "responses",
  "google-generate": "chat",
};

/** The call of a chat-shaped request. Members are named one by one: copying objects of this size costs a microsecond. */
export function chatCall(origin: CallOrigin, read: ReadChat): ChatCall {
  let canonical: CanonicalRequest | undefined;
  const call: ChatCall = {
    traceId: origin.traceId,
    generationId: origin.generationId,
    shownId: origin.shownId,
    caller: origin.caller,
    startedMs: origin.startedMs,
    signalOf: origin.signalOf,
    wantsBalance: origin.wantsBalance,
    forcedProviders: origin.forcedProviders,
    tokensUsed: origin.tokensUsed,
    sessionId: origin.sessionId,
    origin: origin.origin,
    appTitle: origin.appTitle,
    traceParent: origin.traceParent,
    dialect: read.dialect,
    text: read.text,
    body: read.body,
    dialectHeaders: read.dialectHeaders,
    signatures: read.signatures,
    nowSeconds: read.nowSeconds,
    canonical: () => (canonical ??= read.decode(read.body)),
    surface: "chat",
    recordedAs: recordedNames[read.dialect],
    asks: chatAsks(read),
    interpret: (route) => interpret(call, route),
    assertServes: assertServesChat,
  };
  return call;
}

import type { ClientRequest, Interpretation, InterpretedRoute } from "../interpretation.ts";
import { chatHabits } from "../mismatched-answer.ts";
import { ChatRelay } from "./chat-relay.ts";
import { readCompletion } from "./read-completion.ts";
import { requestText } from "./request-text.ts";

/** Chat clients to chat upstreams: the original bytes, with only those members replaced that have to change. */
export const interpretOpenaiChat = (request: ClientRequest, route: InterpretedRoute): Interpretation => ({
  habits: chatHabits["openai-chat"],
  requestText: requestText(request, route),
  losses: [],
  readWhole: (text, body) => readCompletion(text, body, request),
  createRelay: (options) => new ChatRelay({ ...options, traceId: request.traceId }),
});

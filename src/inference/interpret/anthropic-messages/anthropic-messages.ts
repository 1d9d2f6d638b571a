import type { ClientRequest, Interpretation, InterpretedRoute } from "../interpretation.ts";
import { chatHabits } from "../mismatched-answer.ts";
import { MessagesRelay } from "./messages-relay.ts";
import { readMessage } from "./read-message.ts";
import { requestHeaders } from "./request-headers.ts";
import { requestText } from "./request-text.ts";

/** Messages clients to Messages upstreams: the original bytes, with only those members replaced that have to change. */
export function interpretAnthropicMessages(
  request: ClientRequest,
  route: InterpretedRoute,
): Interpretation {
  const { text, losses } = requestText(request, route);
  return {
    habits: chatHabits["anthropic-messages"],
    requestText: text,
    requestHeaders: requestHeaders(request.dialectHeaders),
    losses,
    readWhole: readMessage,
    createRelay: (options) => new MessagesRelay({ ...options, traceId: request.traceId }),
  };
}

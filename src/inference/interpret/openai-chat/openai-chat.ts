import type { ClientRequest, Interpretation, InterpretedRoute } from "../interpretation.ts";
import { chatHabits } from "../mismatched-answer.ts";
import { answerShapeOf } from "./answer-shape.ts";
import { ChatRelay } from "./chat-relay.ts";
import { readCompletion } from "./read-completion.ts";
import { requestText } from "./request-text.ts";

/** Chat clients to chat upstreams: the original bytes, with only those members replaced that have to change. */
export function interpretOpenaiChat(
  request: ClientRequest,
  route: InterpretedRoute,
): Interpretation {
  const { text, losses } = requestText(request, route);
  const shape = answerShapeOf(request);
  const { traceId, nowSeconds } = request;
  return {
    habits: chatHabits["openai-chat"],
    requestText: text,
    losses,
    readWhole: (answer, body) => readCompletion(answer, body, { shape, nowSeconds }),
    createRelay: (options) => new ChatRelay({ ...options, traceId, shape, nowSeconds }),
  };
}

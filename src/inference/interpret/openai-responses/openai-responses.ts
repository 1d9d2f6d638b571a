import type { ClientRequest, Interpretation, InterpretedRoute } from "../interpretation.ts";
import { wantsMetadataInLastEvent } from "../metadata-place.ts";
import { chatHabits } from "../mismatched-answer.ts";
import { readResponse } from "./read-response.ts";
import { requestText } from "./request-text.ts";
import { ResponsesRelay } from "./responses-relay.ts";

/** Responses clients to Responses upstreams: the original bytes, with only those members replaced that have to change. */
export function interpretOpenaiResponses(
  request: ClientRequest,
  route: InterpretedRoute,
): Interpretation {
  const { text, losses } = requestText(request, route);
  const providerId = route.route.provider.id;
  return {
    habits: chatHabits["openai-responses"],
    requestText: text,
    losses,
    readWhole: (whole, body) => readResponse(whole, body, { request, providerId }),
    createRelay: (options) =>
      new ResponsesRelay({
        ...options,
        request,
        providerId,
        metadataInLastEvent: wantsMetadataInLastEvent(request),
      }),
  };
}

import type { JsonObject } from "../../canonical/json.ts";
import { outputText } from "../../dialects/openai-responses/response-record.ts";
import { asGatewayFacts } from "../gateway-facts.ts";
import type { ClientRequest, ShownAnswer, WholeAnswer } from "../interpretation.ts";
import { ResponseMeter, type ItemFields, type ResponseFields } from "./response-meter.ts";
import { responseText } from "./response-text.ts";

/** The output items of a response. */
export const itemsOf = ({ output }: ResponseFields): (ItemFields & JsonObject)[] =>
  Array.isArray(output)
    ? output.filter(
        (item): item is ItemFields & JsonObject => typeof item === "object" && item !== null,
      )
    : [];

/** What is added to a response that has ended, beside the charge. */
export const endOf = (
  response: ResponseFields & { completed_at?: unknown },
  nowSeconds: number,
): {
  outputText: string;
  completedAtSeconds: number | undefined;
} => ({
  outputText: outputText(itemsOf(response)),
  completedAtSeconds:
    response.status === "completed" && typeof response.completed_at !== "number"
      ? nowSeconds
      : undefined,
});

/** Reads what settlement needs from a response; undefined when it is none, or has not ended well. */
export function readResponse(
  text: string,
  response: ResponseFields,
  { request, providerId }: { request: ClientRequest; providerId: string },
): WholeAnswer | undefined {
  const { status, output } = response;
  if (!Array.isArray(output) || (status !== "completed" && status !== "incomplete"))
    return undefined;
  const meter = new ResponseMeter();
  for (const item of itemsOf(response)) meter.addItem(item);
  meter.addResponse(response);
  const thought = meter.thought > 0 || (meter.usage?.usage.reasoningTokens ?? 0) > 0;
  return {
    upstreamId: typeof response.id === "string" ? response.id : null,
    finishReason: meter.finishReason,
    metered: meter.usage,
    outputCharacters: meter.outputCharacters,
    hasContent: meter.isAnswer,
    spentOnReasoning: meter.visible === 0 && meter.finishReason === "length" && thought,
    render: (shown) => renderResponse(text, response, { shown, request, providerId }),
  };
}

function renderResponse(
  text: string,
  response: ResponseFields,
  {
    shown,
    request,
    providerId,
  }: { shown: ShownAnswer; request: ClientRequest; providerId: string },
): string {
  const { id, model, metered } = shown;
  const gateway = asGatewayFacts({ ...shown, metadataText: shown.metadataText() });
  return responseText(text, {
    id,
    model,
    providerId,
    requestBody: request.body,
    end: { metered, gateway, ...endOf(response, request.nowSeconds()) },
  });
}

import { GatewayError } from "../../../platform/lib/errors.ts";
import type { CatalogModel } from "../../catalog/model.ts";
import type { CallOrigin, InferenceCall } from "../../inference-call.ts";
import type { Fields } from "../read-fields.ts";
import { routingOf, surfaceCall, tokensOfTexts } from "../surface-call.ts";
import { guardFormatOf, moderates } from "./guard-formats.ts";
import { interpretModerations } from "./interpret-moderations.ts";
import type { ModerationRequest } from "./moderation-request.ts";

/** A request to moderate as its route has read it. */
export interface ReadModerations {
  text: string;
  body: Fields;
  request: ModerationRequest;
  /** The model that is asked for, the default put in. */
  model: string;
}

/** Input tokens of a request: its texts, and what asking a guard model about each takes. */
export function moderationTokens({ texts }: ModerationRequest, model: string): number {
  return tokensOfTexts(texts) + texts.length * (guardFormatOf({ id: model })?.promptTokens ?? 0);
}

/** The call of a request to moderate texts; all of them are one call, and one charge. */
export function moderationsCall(
  origin: CallOrigin,
  { text, body, request, model }: ReadModerations,
): InferenceCall {
  const format = guardFormatOf({ id: model });
  const outputTokensMax =
    format?.questions("").reduce((sum, question) => sum + question.outputTokensMax, 0) ?? 0;
  return surfaceCall(origin, {
    surface: "moderations",
    text,
    routing: routingOf(body, model),
    asks: {
      texts: request.texts.length,
      outputTokensMax,
      inputTokens: moderationTokens(request, model),
    },
    interpret: (route) => interpretModerations(request, route),
    assertServes: assertModerates,
  });
}

function assertModerates(model: CatalogModel): void {
  if (moderates(model)) return;
  throw new GatewayError(
    "model_not_moderation_compatible",
    `The model ${model.id} is no guard model and does not moderate.`,
    {
      param: "model",
    },
  );
}

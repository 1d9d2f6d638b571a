import type { GatewayRequest, PromptCaching } from "../canonical/request.ts";
import type { RequestFields } from "./request-fields.ts";
import { withoutUndefined } from "./without-undefined.ts";

/** What a request asks of the gateway itself; the fields are the same in every client dialect. */
export const decodeGateway = (body: RequestFields): GatewayRequest =>
  withoutUndefined<GatewayRequest>({
    models: body.strings("models"),
    provider: body.objectField("provider"),
    sessionId: body.string("session_id"),
    trace: body.objectField("trace"),
    requireParams: body.strings("require_params"),
    minContext: body.number("min_context"),
  });

/** OpenAI's fields for caching the prompt as a whole, which chat and Responses share. */
export const decodePromptCaching = (body: RequestFields): PromptCaching =>
  withoutUndefined<PromptCaching>({
    key: body.string("prompt_cache_key"),
    retention: body.string("prompt_cache_retention"),
    options: body.objectField("prompt_cache_options"),
  });

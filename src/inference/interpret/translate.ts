import type { Loss } from "../canonical/loss.ts";
import type { CanonicalRequest } from "../canonical/request.ts";
import type { CanonicalResponse } from "../canonical/response.ts";
import { responseParts } from "../canonical/response-parts.ts";
import type { UpstreamRoute } from "../catalog/model.ts";
import type { ClientDialect, DecodeContext, ResponseContext, UpstreamDialect } from "../dialects/dialect.ts";
import { keepSignature, withSignatures, type WorkspaceSignatures } from "./call-signatures.ts";
import { asGatewayFacts } from "./gateway-facts.ts";
import type { ClientRequest, Interpretation, InterpretedRoute, RelayOptions, ShownAnswer, WholeAnswer } from "./interpretation.ts";
import { wantsMetadataInLastEvent } from "./metadata-place.ts";
import { fallbackBlock } from "./model-fallback.ts";
import { chatHabits } from "./mismatched-answer.ts";
import { reasoningFor } from "./reasoning-rules.ts";
import { SpokenMeter } from "./spoken-meter.ts";
import { TranslatedRelay } from "./translated-relay.ts";

/** The two dialects that a request is translated between. */
export interface DialectPair {
  client: ClientDialect;
  upstream: UpstreamDialect;
}

/** Any client to any upstream, through the canonical form. */
export function translate(request: ClientRequest, { model, route }: InterpretedRoute, { client, upstream }: DialectPair): Interpretation {
  const capped = withCap(request.canonical(), route);
  const reasoned = withReasoning(capped.request, { route: { model, route }, upstream });
  const canonical = signsCalls(upstream) ? { ...reasoned, messages: withSignatures(reasoned.messages, request.signatures) } : reasoned;
  const { body, losses, toolAliases } = upstream.encodeRequest(canonical, {
    upstreamModel: route.upstreamModel,
    stream: canonical.stream,
    providerId: route.provider.id,
    ...(route.maxCompletionTokens !== undefined && { maxCompletionTokens: route.maxCompletionTokens }),
    quirks: route.provider.quirks,
  });
  const decoding: DecodeContext = { providerId: route.provider.id, toolAliases };
  const answering: ResponseContext = {
    request: canonical,
    requestBody: request.body,
    nowSeconds: request.nowSeconds,
    metadataInLastEvent: wantsMetadataInLastEvent(request),
  };
  return {
    habits: chatHabits[upstream.id],
    requestText: JSON.stringify(body),
    ...(upstream.requestHeaders !== undefined && { requestHeaders: upstream.requestHeaders }),
    losses: [...capped.losses, ...losses],
    readWhole: (_, answer) => {
      const response = dated(upstream.decodeResponse(answer, decoding), request);
      if (signsCalls(upstream)) keepSignatures(response, request.signatures);
      return readAnswer(response, { client, answering });
    },
    createRelay: (options) => new TranslatedRelay({
      ...options,
      decoder: upstream.createStreamDecoder(decoding),
      encoder: client.createStreamEncoder({ ...answering, ...options.shown, inputTokens: options.inputTokens, ...knownFacts(options) }),
      pingFrame: client.pingFrame ?? ": ping\n",
      traceId: request.traceId,
      signatures: request.signatures,
      nowSeconds: request.nowSeconds,
    }),
  };
}

/** A fallback is known before the answer, and told with the first usage: in Messages at the start. */
const knownFacts = ({ fallback }: RelayOptions): Pick<ResponseContext, "gateway"> =>
  (fallback === undefined ? {} : { gateway: { requestedModel: fallback.requestedModel, fallback: fallbackBlock(fallback) } });

/** The answer with a time, which Messages and the Gemini API do not tell. */
const dated = (response: CanonicalResponse, { nowSeconds }: ClientRequest): CanonicalResponse =>
  (response.createdAtSeconds > 0 ? response : { ...response, createdAtSeconds: nowSeconds() });

/** Whether calls of this dialect carry signatures that have to come back. */
const signsCalls = ({ id }: UpstreamDialect): boolean => id === "google-generate";

function keepSignatures({ choices }: CanonicalResponse, signatures: WorkspaceSignatures): void {
  for (const part of choices.flatMap(({ parts }) => parts)) if (part.type === "tool-call") keepSignature(part, signatures);
}

/** The output cap is cut to what the route allows, since providers answer more with 400. */
function withCap(request: CanonicalRequest, { maxCompletionTokens }: UpstreamRoute): { request: CanonicalRequest; losses: Loss[] } {
  const { maxOutputTokens } = request;
  if (maxOutputTokens === undefined || maxCompletionTokens === undefined || maxOutputTokens <= maxCompletionTokens) {
    return { request, losses: [] };
  }
  const loss = { field: "max_tokens", reason: `cut to the ${maxCompletionTokens} that the provider allows for this model` };
  return { request: { ...request, maxOutputTokens: maxCompletionTokens }, losses: [loss] };
}

function withReasoning(
  canonical: CanonicalRequest,
  { route: { model, route }, upstream }: { route: InterpretedRoute; upstream: UpstreamDialect },
): CanonicalRequest {
  const { reasoning, ...rest } = canonical;
  const asked = reasoningFor(canonical, { upstream: upstream.id, declared: route.reasoning ?? model.reasoning });
  return asked === undefined ? rest : { ...rest, reasoning: asked };
}

function readAnswer(
  response: CanonicalResponse,
  { client, answering }: { client: ClientDialect; answering: ResponseContext },
): WholeAnswer | undefined {
  if (response.choices.length === 0) return undefined;
  const meter = new SpokenMeter();
  for (const part of responseParts(response)) meter.observe(part);
  const { finishReason, visibleCharacters, thoughtCharacters } = meter;
  const thought = thoughtCharacters > 0 || (response.usage?.usage.reasoningTokens ?? 0) > 0;
  return {
    upstreamId: response.id === "" ? null : response.id,
    finishReason,
    metered: response.usage,
    outputCharacters: visibleCharacters + thoughtCharacters,
    hasContent: meter.isAcceptable,
    spentOnReasoning: visibleCharacters === 0 && finishReason === "length" && thought,
    render: (shown) => renderAnswer(response, { client, answering, shown }),
  };
}

function renderAnswer(
  response: CanonicalResponse,
  { client, answering, shown }: { client: ClientDialect; answering: ResponseContext; shown: ShownAnswer },
): string {
  const { id, model, metered } = shown;
  // The record of Responses has the metadata; whole answers of the other dialects tell it in their headers.
  const metadataText = client.id === "openai-responses" ? shown.metadataText() : undefined;
  const gateway = asGatewayFacts({ ...shown, metadataText });
  return JSON.stringify(client.encodeResponse({ ...response, usage: metered, gateway }, { ...answering, id, model }));
}

import { brand } from "../../platform/lib/brand.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Loss } from "../canonical/loss.ts";
import type { CanonicalRequest } from "../canonical/request.ts";
import type { CanonicalResponse } from "../canonical/response.ts";
import type { UpstreamRoute } from "../catalog/model.ts";
import { AnswerLosses } from "../dialects/answer-losses.ts";
import type {
  ClientDialect,
  DecodeContext,
  ResponseContext,
  UpstreamDialect,
} from "../dialects/dialect.ts";
import { keepSignature, withSignatures, type WorkspaceSignatures } from "./call-signatures.ts";
import { asGatewayFacts } from "./gateway-facts.ts";
import type {
  ClientRequest,
  Interpretation,
  InterpretedRoute,
  RelayOptions,
  ShownAnswer,
  WholeAnswer,
} from "./interpretation.ts";
import { fittedCap, lowerCap } from "./lowered-cap.ts";
import { wantsMetadataInLastEvent } from "./metadata-place.ts";
import { fallbackBlock } from "./model-fallback.ts";
import { chatHabits } from "./mismatched-answer.ts";
import { reasoningFor, takesFormat, undeclaredFormat } from "./reasoning-rules.ts";
import { SpokenMeter } from "./spoken-meter.ts";
import { TranslatedRelay } from "./translated-relay.ts";

/** The two dialects that a request is translated between. */
export interface DialectPair {
  client: ClientDialect;
  upstream: UpstreamDialect;
}

/** Any client to any upstream, through the canonical form. */
export function translate(
  request: ClientRequest,
  { model, route, outputCap }: InterpretedRoute,
  { client, upstream }: DialectPair,
): Interpretation {
  const capped = withCap(request.canonical(), { route, outputCap });
  const largest = lowerCap(route.maxCompletionTokens, outputCap);
  const formatted = withFormat(capped.request, route);
  const reasoned = withReasoning(formatted.request, { route: { model, route }, upstream });
  const canonical = signsCalls(upstream)
    ? { ...reasoned, messages: withSignatures(reasoned.messages, request.signatures) }
    : reasoned;
  const { body, losses, toolAliases } = upstream.encodeRequest(canonical, {
    upstreamModel: route.upstreamModel,
    stream: canonical.stream,
    providerId: route.provider.id,
    ...(largest !== undefined && { maxCompletionTokens: largest }),
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
    losses: [...capped.losses, ...formatted.losses, ...losses],
    readWhole: (_, answer) => {
      const response = upstream.decodeResponse(answer, decoding);
      // Messages and the Gemini API tell no time.
      if (response.createdAtSeconds <= 0) response.createdAtSeconds = request.nowSeconds();
      if (signsCalls(upstream)) keepSignatures(response, request.signatures);
      return readAnswer(response, { client, answering });
    },
    usageOfFailure: (answer) => upstream.usageOfFailure?.(answer),
    createRelay: (options) =>
      new TranslatedRelay({
        ...options,
        decoder: upstream.createStreamDecoder(decoding),
        answerLosses: new AnswerLosses(client, answering),
        encoder: client.createStreamEncoder({
          ...answering,
          ...options.shown,
          inputTokens: options.inputTokens,
          ...knownFacts(options),
        }),
        pingFrame: client.pingFrame ?? ": ping\n",
        traceId: request.traceId,
        signatures: request.signatures,
        nowSeconds: request.nowSeconds,
      }),
  };
}

/** A fallback is known before the answer, and told with the first usage: in Messages at the start. */
const knownFacts = ({ fallback }: RelayOptions): Pick<ResponseContext, "gateway"> =>
  fallback === undefined
    ? {}
    : { gateway: { requestedModel: fallback.requestedModel, fallback: fallbackBlock(fallback) } };

/** Whether calls of this dialect carry signatures that have to come back. */
const signsCalls = ({ id }: UpstreamDialect): boolean => id === "google-generate";

function keepSignatures({ choices }: CanonicalResponse, signatures: WorkspaceSignatures): void {
  for (const { parts } of choices)
    for (const part of parts) if (part.type === "tool-call") keepSignature(part, signatures);
}

function withCap(
  asked: CanonicalRequest,
  { route, outputCap }: { route: UpstreamRoute; outputCap: number | undefined },
): { request: CanonicalRequest; losses: readonly Loss[] } {
  const field = asked.dialect === "openai-responses" ? "max_output_tokens" : "max_tokens";
  const { cap, losses } = fittedCap(asked.maxOutputTokens, { field, route, outputCap });
  return {
    request:
      cap === asked.maxOutputTokens || cap === undefined
        ? asked
        : { ...asked, maxOutputTokens: cap },
    losses,
  };
}

/** A format of the answer goes to routes that declare it, and to those that declare nothing. */
function withFormat(
  request: CanonicalRequest,
  route: UpstreamRoute,
): { request: CanonicalRequest; losses: Loss[] } {
  if (request.output === undefined || request.output.type === "text" || takesFormat(route))
    return { request, losses: [] };
  const { output: _, ...rest } = request;
  return { request: rest, losses: [undeclaredFormat("response_format")] };
}

function withReasoning(
  canonical: CanonicalRequest,
  { route: { model, route }, upstream }: { route: InterpretedRoute; upstream: UpstreamDialect },
): CanonicalRequest {
  const asked = reasoningFor(canonical, {
    upstream: upstream.id,
    declared: route.reasoning ?? model.reasoning,
  });
  if (asked === canonical.reasoning) return canonical;
  const { reasoning: _, ...rest } = canonical;
  return asked === undefined ? rest : { ...rest, reasoning: asked };
}

function readAnswer(
  response: CanonicalResponse,
  { client, answering }: { client: ClientDialect; answering: ResponseContext },
): WholeAnswer | undefined {
  if (response.choices.length === 0) return undefined;
  const meter = new SpokenMeter();
  meter.observeWhole(response);
  const answerLosses = new AnswerLosses(client, answering);
  answerLosses.observeWhole(response);
  const { finishReason, visibleCharacters, thoughtCharacters } = meter;
  if (finishReason === "error" && client.id === "anthropic-messages") throw brokenOff(response);
  const thought = thoughtCharacters > 0 || (response.usage?.usage.reasoningTokens ?? 0) > 0;
  return {
    upstreamId: response.id === "" ? null : response.id,
    finishReason,
    metered: response.usage,
    outputCharacters: visibleCharacters + thoughtCharacters,
    hasContent: meter.isAcceptable,
    spentOnReasoning: visibleCharacters === 0 && finishReason === "length" && thought,
    losses: answerLosses.list,
    render: (shown) => renderAnswer(response, { client, answering, shown }),
  };
}

/** The refusal of an answer that its provider broke off: a message has no word for that, and would look whole. */
function brokenOff({ choices }: CanonicalResponse): GatewayError {
  const told = choices.find(({ finish }) => finish.reason === "error")?.finish.explanation;
  const message = told ?? "The provider broke off the answer.";
  return new GatewayError("upstream_error", message, { metadata: { upstream_message: message } });
}

function renderAnswer(
  response: CanonicalResponse,
  {
    client,
    answering,
    shown,
  }: { client: ClientDialect; answering: ResponseContext; shown: ShownAnswer },
): string {
  const { id, model, metered } = shown;
  const gateway = asGatewayFacts({
    chargedNano: shown.chargedNano,
    isByok: shown.isByok,
    metered,
    fallback: shown.fallback,
    metadataText: undefined,
  });
  const text = JSON.stringify(
    client.encodeResponse({ ...response, usage: metered, gateway }, { ...answering, id, model }),
  );
  // The record of Responses has the metadata, last of all; whole answers of the other dialects tell it in their headers.
  return client.id === "openai-responses"
    ? `${text.slice(0, -1)},"${brand.metadataKey}":${shown.metadataText()}}`
    : text;
}

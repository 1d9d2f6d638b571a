import type { DialectId } from "../canonical/dialect-id.ts";
import { assert, AssertionError } from "../../platform/kernel/assert.ts";
import { clientDialects, upstreamDialects } from "../dialects/index.ts";
import { type Provider, routeDialect, type UpstreamRoute } from "../catalog/model.ts";
import { fitToEndpoint } from "../providers/endpoint.ts";
import type {
  Adapt,
  Adapter,
  ClientRequest,
  AdaptedRoute,
  AssembledAnswer,
  AnswerDeviations,
} from "./inference-call.ts";
import {
  keepSignatures,
  type WorkspaceSignatures,
  withSignatures,
  newLateSeals,
  type LateSeals,
  withLateSeals,
} from "./stream/call-signatures.ts";
import type { ExceptionForm } from "../upstream/event-stream-decoder.ts";
import { brand } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Loss, CanonicalRequest } from "../canonical/request.ts";
import { answerFacts } from "../canonical/answer-meter.ts";
import { type CanonicalResponse, responseParts } from "../canonical/response.ts";
import { AnswerLosses } from "../dialects/shared/encode-state.ts";
import type {
  ClientDialect,
  DecodeContext,
  ResponseContext,
  UpstreamDialect,
} from "../dialects/dialect.ts";
import { Relay } from "./stream/relay.ts";
import { type KnownTurns, TranslatedWriter } from "./stream/translated-writer.ts";
import {
  asGatewayFacts,
  fallbackBlock,
  wantsMetadataInLastEvent,
} from "../dialects/shared/gateway-facts.ts";
import type { RelayOptions } from "../dialects/shared/stream/stream-relay.ts";
import type { ShownAnswer, WholeAnswer, OriginalRequest } from "../dialects/shared/exchange.ts";
import { fittedCap, lowerCap } from "../dialects/shared/output-cap.ts";
import {
  reasoningFor,
  reasonsAt,
  takesFormat,
  undeclaredFormat,
} from "../dialects/shared/reasoning-rules.ts";
import { runsSearches } from "../dialects/shared/extras/web-search.ts";
import { CallIds, callIdsIn } from "../dialects/shared/tools.ts";
import { AnswerReader } from "../dialects/shared/stream/answer-reader.ts";
import { ResponseAssembler } from "../canonical/response-assembler.ts";
import { SseDecoder } from "../upstream/sse-decoder.ts";

/**
 * Adapts a client's request to a route: keeps the client's own bytes where both sides speak the
 * same dialect, and translates through the canonical form otherwise.
 */
export const adapt: Adapt = (request, route) => {
  const upstream = chatDialectOf(route.route);
  const adapter = withLosses(adaptAs(upstream, request, route), request.losses);
  return upstreamDialects[upstream].requestHeaders === undefined
    ? adapter
    : fitted(adapter, { dialect: upstream, provider: route.route.provider });
};

/** Returns the adapter with what the request had lost before; nearly all requests lost nothing. */
const withLosses = (adapter: Adapter, losses: ClientRequest["losses"]): Adapter =>
  losses === undefined || losses.length === 0
    ? adapter
    : { ...adapter, losses: [...losses, ...adapter.losses] };

function adaptAs(upstream: DialectId, ...[request, route]: Parameters<Adapt>): Adapter {
  const client = clientDialects[request.dialect];
  assert(client !== undefined, `clients do not speak ${request.dialect}`);
  if (upstream === request.dialect) {
    const kept = client.passThrough(request, route);
    return Object.assign(kept, {
      answerDeviations: chatAnswerDeviations[upstream],
      createRelay(options: RelayOptions) {
        const { reader, writer } = kept.openStream(options);
        return new Relay(reader, writer);
      },
    });
  }
  return translate(request, route, { client, upstream: upstreamDialects[upstream] });
}

/**
 * Adjusts body and headers for providers whose endpoints of one dialect differ, such as in where
 * the API version is given.
 */
function fitted(
  adapter: Adapter,
  { dialect, provider: { deviations } }: { dialect: DialectId; provider: Provider },
): Adapter {
  const { requestText, requestHeaders = {}, losses } = adapter;
  // A translated request already carries the version header and no other.
  if (
    requestHeaders === upstreamDialects[dialect].requestHeaders &&
    deviations.bodyVersion === undefined
  )
    return adapter;
  const fit = fitToEndpoint(
    { text: requestText, headers: requestHeaders },
    { dialect, deviations },
  );
  return {
    ...adapter,
    requestText: fit.text,
    requestParts: undefined,
    requestHeaders: fit.headers,
    losses: [...losses, ...fit.losses],
  };
}

const isDialect = (dialect: string): dialect is DialectId =>
  Object.hasOwn(upstreamDialects, dialect);

/** Returns the chat dialect of a route; undefined where it serves no chat. */
function dialectIn(route: UpstreamRoute): DialectId | undefined {
  const dialect = routeDialect(route, "chat");
  return dialect !== undefined && isDialect(dialect) ? dialect : undefined;
}

/** Returns the chat dialect that a route is called in. Routes without one are never candidates. */
export function chatDialectOf(route: UpstreamRoute): DialectId {
  const found = dialectIn(route);
  if (found === undefined) throw new AssertionError(`${route.provider.id} serves no chat`);
  return found;
}

/**
 * Returns the exception form of a route whose streams are Amazon's binary messages; undefined for
 * server-sent events.
 */
export function exceptionFormOf(route: UpstreamRoute): ExceptionForm | undefined {
  const id = dialectIn(route);
  // Streams of other surfaces are server-sent events.
  if (id === undefined) return undefined;
  const { binaryStreams, exceptionForm } = upstreamDialects[id];
  const isBinary = binaryStreams === true || route.provider.deviations.eventStreamFrames === true;
  return isBinary ? exceptionForm : undefined;
}

/** The two dialects that a request is translated between. */
interface DialectPair {
  client: ClientDialect;
  upstream: UpstreamDialect;
}

/**
 * Translates a request of any client dialect for any upstream dialect, through the canonical form.
 */
function translate(
  request: ClientRequest,
  { model, route, outputCap }: AdaptedRoute,
  { client, upstream }: DialectPair,
): Adapter {
  const capped = withCap(request.canonical(), { route, outputCap, field: client.capField });
  const lost = headerLosses(request, { client, upstream });
  const largest = lowerCap(route.maxCompletionTokens, outputCap);
  const formatted = withFormat(capped.request, route);
  const reasoned = withReasoning(formatted.request, { route: { model, route }, upstream });
  const { signatures } = request;
  const canonical = withSeals(reasoned, { signatures, client, upstream, route });
  const lateSeals = lateSealsOf(reasoned, { signatures, client });
  const callIds = callIdsIn(canonical.messages);
  // A stream keeps the request in memory until it ends, and has no use for its messages.
  const { messages: _, ...asked } = canonical;
  const { body, losses, toolAliases } = upstream.encodeRequest(canonical, {
    upstreamModel: route.upstreamModel,
    stream: canonical.stream,
    providerId: route.provider.id,
    ...(largest !== undefined && { maxCompletionTokens: largest }),
    reasons: reasonsAt({ model, route }),
    refuses: route.refuses,
    deviations: route.provider.deviations,
    searches: runsSearches(upstream.id, route.price),
  });
  const decoding: DecodeContext = {
    providerId: route.provider.id,
    toolAliases,
    callSeed: request.traceId,
    toolNames: () => [...toolNamesOf(asked), ...toolAliases.keys()],
  };
  const answering: ResponseContext = {
    request: asked,
    requestBody: withoutConversation(request.body),
    providerId: route.provider.id,
    nowSeconds: request.nowSeconds,
    metadataInLastEvent: wantsMetadataInLastEvent(request),
  };
  return {
    answerDeviations: chatAnswerDeviations[upstream.id],
    requestText: JSON.stringify(body),
    ...(upstream.requestHeaders !== undefined && { requestHeaders: upstream.requestHeaders }),
    losses: [...lost, ...capped.losses, ...formatted.losses, ...losses],
    readWhole: (_, answer) => {
      const response = new CallIds(callIds).inAnswer(upstream.decodeResponse(answer, decoding));
      // Messages and the Gemini API report no creation time.
      if (response.createdAtSeconds <= 0) response.createdAtSeconds = request.nowSeconds();
      if (upstream.signsCalls === true) keepSignatures(response, request.signatures);
      return readAnswer(response, { client, upstream, answering });
    },
    usageOfFailure: (answer) => upstream.usageOfFailure?.(answer),
    createRelay(options) {
      const known = { lateSeals, callIds: new CallIds(callIds) };
      return translatedRelay(options, { request, client, upstream, decoding, answering, known });
    },
  };
}

/** Returns the relay of a stream between two dialects. */
function translatedRelay(
  options: RelayOptions,
  {
    request: { traceId, signatures, nowSeconds },
    client,
    upstream,
    decoding,
    answering,
    known,
  }: DialectPair & {
    request: Pick<ClientRequest, "traceId" | "signatures" | "nowSeconds">;
    decoding: DecodeContext;
    answering: ResponseContext;
    known: KnownTurns;
  },
): Relay {
  const { hidesReasoning } = upstream;
  const decoder = upstream.createStreamDecoder(decoding);
  const reader = new AnswerReader(decoder, { ...options, hidesReasoning });
  const encoder = client.createStreamEncoder({
    ...answering,
    ...options.shown,
    inputTokens: options.inputTokens,
    ...knownFacts(options),
  });
  const writer = new TranslatedWriter({
    ...options,
    ...known,
    reader,
    encoder,
    answerLosses: new AnswerLosses(client, answering),
    pingFrame: client.pingFrame ?? ": ping\n",
    traceId,
    signatures,
    nowSeconds,
  });
  return new Relay(reader, writer);
}

/** Returns the client's headers that no provider of another dialect can act upon. */
const headerLosses = (
  { dialectHeaders }: ClientRequest,
  { client: { providerHeaders = [] }, upstream }: DialectPair,
): Loss[] =>
  providerHeaders
    .filter((name) => dialectHeaders[name] !== undefined)
    .map((field) => ({ field, reason: `${upstream.id} has no such header` }));

/** Returns the keeper of seals that a stream leaves out; undefined where none is left out. */
const lateSealsOf = (
  { messages, stream }: CanonicalRequest,
  { signatures, client }: { signatures: WorkspaceSignatures; client: ClientDialect },
): LateSeals | undefined =>
  client.endsInText === true && stream ? newLateSeals(messages, signatures) : undefined;

/** Returns the request with the seals that its client could not send back. */
function withSeals(
  request: CanonicalRequest,
  {
    signatures,
    client,
    upstream,
    route,
  }: DialectPair & { signatures: WorkspaceSignatures; route: UpstreamRoute },
): CanonicalRequest {
  let { messages } = request;
  if (upstream.signsCalls === true) messages = withSignatures(messages, signatures);
  if (client.endsInText === true)
    messages = withLateSeals(messages, { signatures, providerId: route.provider.id });
  return messages === request.messages ? request : { ...request, messages };
}

const toolNamesOf = ({ tools = [] }: Pick<CanonicalRequest, "tools">): string[] =>
  tools.flatMap((tool) => (tool.type === "hosted" ? [] : [tool.name]));

/**
 * Returns the fallback, which is known before the answer begins. A Messages client gets it with the
 * first usage, at the start of the stream.
 */
const knownFacts = ({ fallback }: RelayOptions): Pick<ResponseContext, "gateway"> =>
  fallback === undefined
    ? {}
    : { gateway: { requestedModel: fallback.requestedModel, fallback: fallbackBlock(fallback) } };

function withCap(
  asked: CanonicalRequest,
  {
    route,
    outputCap,
    field,
  }: {
    route: UpstreamRoute;
    outputCap: number | undefined;
    field: ClientDialect["capField"];
  },
): { request: CanonicalRequest; losses: readonly Loss[] } {
  const { cap, losses } = fittedCap(asked.maxOutputTokens, { field, route, outputCap });
  return {
    request:
      cap === asked.maxOutputTokens || cap === undefined
        ? asked
        : { ...asked, maxOutputTokens: cap },
    losses,
  };
}

/**
 * Removes the response format for routes that declare parameters without it; routes that declare
 * none are sent it.
 */
function withFormat(
  request: CanonicalRequest,
  route: UpstreamRoute,
): { request: CanonicalRequest; losses: Loss[] } {
  if (request.output === undefined || request.output.type === "text" || takesFormat(route))
    return { request, losses: [] };
  const { output: _, ...rest } = request;
  return { request: rest, losses: [undeclaredFormat()] };
}

function withReasoning(
  canonical: CanonicalRequest,
  { route: { model, route }, upstream }: { route: AdaptedRoute; upstream: UpstreamDialect },
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
  { client, upstream, answering }: DialectPair & { answering: ResponseContext },
): WholeAnswer {
  const facts = answerFacts(response, upstream.hidesReasoning);
  const answerLosses = new AnswerLosses(client, answering);
  answerLosses.observeWhole(response);
  if (facts.finishReason === "error" && client.refusesBrokenAnswers === true)
    throw brokenOff(response);
  return {
    ...facts,
    losses: answerLosses.list,
    render: (shown) => renderAnswer(response, { client, answering, shown }),
  };
}

/**
 * Builds the error for an answer that its provider broke off. A Messages answer cannot express that
 * and would look complete.
 */
function brokenOff({ choices }: CanonicalResponse): GatewayError {
  const explained = choices.find(({ finish }) => finish.reason === "error");
  const message = explained?.finish.explanation ?? "The provider broke off the answer.";
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
  // A Responses answer carries the metadata as its last member. In the other dialects, whole
  // answers carry it in headers.
  return client.metadataInAnswer === true
    ? `${text.slice(0, -1)},"${brand.metadataKey}":${shown.metadataText()}}`
    : text;
}

/**
 * Assembles the whole answer, in the upstream's dialect, from a stream that a server sent unasked.
 */
function wholeOfEvents(upstream: UpstreamDialect, text: string): AssembledAnswer {
  const sse = new SseDecoder();
  const decoder = upstream.createStreamDecoder();
  const assembler = new ResponseAssembler();
  const events = [...sse.push(Buffer.from(text)), ...sse.end()];
  for (const part of [...events.flatMap((event) => decoder.decode(event)), ...decoder.end()])
    assembler.add(part);
  if (assembler.error !== undefined) return { ok: false, error: assembler.error };
  const whole =
    upstream.wholeOfEvents?.(events.map(({ data }) => data)) ??
    JSON.stringify(clientSideOf(upstream).encodeResponse(assembler.response()));
  return { ok: true, text: whole };
}

/** Returns the client side of a dialect, for the dialects that do not convert their own answers. */
function clientSideOf({ id }: UpstreamDialect): ClientDialect {
  const client = clientDialects[id];
  assert(client !== undefined, `clients do not speak ${id}`);
  return client;
}

/**
 * Converts a whole answer to events, for a server that does not stream although it was asked to. An
 * error, or text that cannot be read, is passed on as one event.
 */
function eventsByCodec(upstream: UpstreamDialect, whole: string): string {
  const text = whole.replace(/[\r\n]+/g, " ").trim();
  try {
    const body: unknown = JSON.parse(text);
    const { type } = Object(body) as { type?: unknown };
    if (type === "error") return `event: error\ndata: ${text}\n\n`;
    const response = upstream.decodeResponse(body);
    const inputTokens = response.usage?.usage.inputTokens;
    const encoder = clientSideOf(upstream).createStreamEncoder(
      inputTokens === undefined ? {} : { inputTokens },
    );
    return responseParts(response)
      .flatMap((part) => encoder.encode(part))
      .join("");
  } catch {
    return `event: error\ndata: ${text}\n\n`;
  }
}

/**
 * Returns the status that an error body means: Gemini answers 400 to an invalid key, and Converse
 * 424 where a model failed.
 */
function meantStatus(
  dialect: DialectId,
  { status, text }: { status: number; text: string },
): number {
  try {
    return upstreamDialects[dialect].readError(status, JSON.parse(text)).status ?? status;
  } catch (error) {
    if (error instanceof SyntaxError) return status;
    throw error;
  }
}

/**
 * Returns the deviations to expect from upstreams of a chat dialect. Binary streams cannot be
 * mistaken for whole answers, nor whole answers for them.
 */
function answerDeviationsOf(upstream: UpstreamDialect): AnswerDeviations {
  const { id, binaryStreams, statusInBody } = upstream;
  const eventsOfWhole = upstream.eventsOfWhole ?? ((text: string) => eventsByCodec(upstream, text));
  return {
    ...(binaryStreams !== true && {
      wholeOfEvents: (text: string) => wholeOfEvents(upstream, text),
      eventsOfWhole,
    }),
    ...(statusInBody === true && {
      meantStatus: (status: number, text: string) => meantStatus(id, { status, text }),
    }),
  };
}

/** The deviations to expect from upstreams of each chat dialect. */
const chatAnswerDeviations = Object.fromEntries(
  Object.values(upstreamDialects).map((dialect) => [dialect.id, answerDeviationsOf(dialect)]),
) as Readonly<Record<DialectId, AnswerDeviations>>;

/**
 * Returns the members of a body that matter once its answer has begun: not the messages, the input
 * or the system prompt, and tools only of Responses, whose answers repeat them.
 */
export function withoutConversation(body: OriginalRequest["body"]): OriginalRequest["body"] {
  const { messages, input: _input, system: _system, contents, ...rest } = body;
  if (messages === undefined && contents === undefined) return rest;
  const { tools: _tools, ...others } = rest;
  return others;
}

import { z } from "zod";
import type { RateClass } from "../../access/rate-limiter.ts";
import {
  countRequest,
  countsTokens,
  reserveTokens,
  type TokensUsed,
} from "../../access/count-request.ts";
import type { Admission } from "../../billing/ledger/hold-rule.ts";
import type { RequestHeaders } from "../../http/request-context.ts";
import { parseJsonObject, readJsonText } from "../../http/read-body.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { usePreset } from "../../identity/presets/preset.ts";
import { providerIdIn } from "../../inference/catalog/model.ts";
import type { ClientDialect } from "../../inference/dialects/dialect.ts";
import { estimateInputTokens } from "../../inference/dialects/requirements.ts";
import { maxSessionIdLength } from "../../inference/dialects/request-check.ts";
import {
  chatCall,
  type CallOrigin,
  type ChatCall,
} from "../../inference/pipeline/inference-call.ts";
import { brandHeader, brand } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";

/**
 * The largest accepted body in bytes; larger ones are refused with 413. It is more than any
 * provider takes, and little enough to be harmless.
 */
export const inferenceBodyBytesMax = 32 * 1024 * 1024;

type Body = Readonly<Record<string, unknown>>;

/** The differences between the chat-like routes in reading their requests. */
export interface CallReader {
  dialect: ClientDialect;
  /** The prefix of the ids that clients of the dialect see. */
  idPrefix: string;
  /** Throws `GatewayError` `bad_request` that names the field. */
  validate(body: Body): void;
  /** Request headers that the dialect defines, in lower case. */
  dialectHeaders: readonly string[];
}

type CallServices = Pick<
  Dependencies,
  "counters" | "clock" | "inference" | "presets" | "directory"
>;

const noHeaders: Readonly<Record<string, string>> = {};

/** Returns the headers of these names that a request has. */
export function pickHeaders(
  headers: RequestHeaders,
  names: readonly string[],
): Readonly<Record<string, string>> {
  if (names.length === 0) return noHeaders;
  const picked: Record<string, string> = {};
  for (const name of names) {
    const value = headers.get(name);
    if (value !== null) picked[name] = value;
  }
  return picked;
}

/** Reads, counts and checks a request of a chat-like route. Throws `GatewayError`. */
export async function readCall(
  context: RequestContext,
  reader: CallReader,
  services: CallServices,
): Promise<ChatCall> {
  const read = await readPresetBody(context, reader, services);
  const counting = countCall(context, services, read);
  if (counting !== undefined) await counting;
  return callOf(context, { services, reader, read });
}

/**
 * Serves a request of a chat-like route. Where processes share rate windows, these are counted
 * while the request is checked, planned and held (decision 0126): no provider is called before they
 * have answered, and the refusal by a full window takes precedence over any other error. Throws
 * `GatewayError`.
 */
export async function withCall<Result>(
  context: RequestContext,
  { reader, services }: { reader: CallReader; services: CallServices },
  serve: (call: ChatCall) => Promise<Result>,
): Promise<Result> {
  const read = await readPresetBody(context, reader, services);
  const ticket = context.traceId;
  const counted = countCall(context, services, read, ticket);
  // A ceiling of tokens counts only what the windows have admitted.
  if (counted === undefined || countsTokens(context.caller as LlmKeyCaller)) {
    if (counted !== undefined) await counted;
    return serve(await callOf(context, { services, reader, read }));
  }
  counted.catch(() => undefined);
  try {
    const admission = { ticket, counted };
    const served = await serve(await callOf(context, { services, reader, read, admission }));
    await counted;
    return served;
  } catch (error) {
    await counted;
    throw error;
  }
}

/** The body of a request with its preset applied. */
interface PresetBody {
  text: string;
  body: Body;
  presetId: string | undefined;
}

async function readPresetBody(
  context: RequestContext,
  reader: CallReader,
  services: CallServices,
): Promise<PresetBody> {
  const caller = context.caller as LlmKeyCaller;
  const sent = await readJsonText(context.request, inferenceBodyBytesMax);
  const { text, body, preset } = usePreset(services.presets, {
    workspaceId: caller.workspace.id,
    presetFields: reader.dialect.presetFields,
    text: sent,
    body: parseJsonObject(sent),
    providerIdOf: (name) => providerIdIn(services.inference.catalog(), name) ?? name.toLowerCase(),
  });
  return { text, body, presetId: preset?.id };
}

const countCall = (
  context: RequestContext,
  { counters }: CallServices,
  { body }: PresetBody,
  ticket?: string,
): Promise<void> | undefined =>
  countRequest(counters, {
    caller: context.caller as LlmKeyCaller,
    rateClass: rateClassOf(body["model"]),
    headers: context.answerHeaders,
    ticket,
  });

/**
 * Returns the call of a request whose body was read and counted, once it is checked; a promise
 * where `callOrigin` returns one.
 */
function callOf(
  context: RequestContext,
  {
    reader,
    services,
    read: { text, body, presetId },
    admission,
  }: {
    reader: CallReader;
    services: CallServices;
    read: PresetBody;
    admission?: Admission;
  },
): ChatCall | Promise<ChatCall> {
  const { idPrefix, dialect } = reader;
  const { counters, clock, inference } = services;
  reader.validate(body);
  if (presetId !== undefined) services.directory.uses.note(presetId, clock.nowMs());
  const arriving = callOrigin(context, {
    idPrefix,
    body,
    counters,
    estimateTokens: () => estimateInputTokens(text, body),
  });
  const callFrom = (origin: CallOrigin): ChatCall =>
    chatCall(admission === undefined ? origin : { ...origin, admission }, {
      dialect,
      text,
      body,
      presetId,
      dialectHeaders: pickHeaders(context.request.headers, reader.dialectHeaders),
      signatures: inference.callSignatures.of(origin.caller.workspace.id),
      nowSeconds: () => Math.floor(clock.nowMs() / 1000),
    });
  return arriving instanceof Promise ? arriving.then(callFrom) : callFrom(arriving);
}

const balanceHeader = brandHeader("Balance-After-Debit");
const providerHeader = brandHeader("Provider");
const sessionHeader = "x-session-id";

function forcedProviders(headers: RequestHeaders): string[] | undefined {
  const value = headers.get(providerHeader);
  const names = value
    ?.split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  return names === undefined || names.length === 0 ? undefined : names;
}

/** Returns the session of the body, or else the header's. */
function sessionIdOf(body: Body, headers: RequestHeaders): string | undefined {
  if (typeof body["session_id"] === "string") return body["session_id"];
  const session = headers.get(sessionHeader) ?? undefined;
  if (session !== undefined && session.length > maxSessionIdLength) {
    const message = `${sessionHeader} may have at most ${maxSessionIdLength} characters; send a shorter one.`;
    throw new GatewayError("bad_request", message, { param: sessionHeader });
  }
  return session;
}

/**
 * Returns where a request comes from, with its tokens counted against its key's ceiling. Throws
 * `GatewayError` when the ceiling is reached or the session's id is too long. A promise where
 * processes share that ceiling's window.
 */
export function callOrigin(
  context: RequestContext,
  {
    idPrefix,
    body,
    counters,
    estimateTokens,
  }: {
    idPrefix: string;
    body: Body;
    counters: Dependencies["counters"];
    estimateTokens: () => number;
  },
): CallOrigin | Promise<CallOrigin> {
  const caller = context.caller as LlmKeyCaller;
  const tokensUsed = reserveTokens(counters, { caller, estimateTokens });
  const originWith = (told: TokensUsed | undefined): CallOrigin =>
    originOf(context, { idPrefix, body, caller, tokensUsed: told });
  return tokensUsed instanceof Promise ? tokensUsed.then(originWith) : originWith(tokensUsed);
}

/** Returns where a request comes from, without counting its tokens, since no provider is called. */
export function originOf(
  { request, traceId, startedMs }: RequestContext,
  {
    idPrefix,
    body,
    caller,
    tokensUsed,
  }: { idPrefix: string; body: Body; caller: LlmKeyCaller; tokensUsed?: TokensUsed | undefined },
): CallOrigin {
  const { headers } = request;
  return {
    traceId,
    generationId: `gen_${traceId}`,
    shownId: idPrefix + traceId,
    caller,
    tokensUsed,
    startedMs,
    signalOf: () => request.signal,
    wantsBalance: headers.get(balanceHeader) === "true",
    forcedProviders: forcedProviders(headers),
    sessionId: sessionIdOf(body, headers),
    origin: headers.get("http-referer") ?? headers.get("referer") ?? undefined,
    appTitle: headers.get("x-title") ?? undefined,
    userAgent: headers.get("user-agent") ?? undefined,
    traceParent: headers.get("traceparent") ?? undefined,
  };
}

/**
 * Matches ids of free models as callers may write them: in any case, and with a suffix shortcut
 * behind.
 */
const freePattern = new RegExp(
  `(?::free|^${brand.routerOwner}/free)(?::(?:nitro|floor|fast|exacto)|\\[\\d+[km]\\])*$`,
  "i",
);

/**
 * Returns the class that a request for a model is counted in (contract: "Limits", ids that end in
 * `:free`).
 */
export const rateClassOf = (model: unknown): RateClass =>
  typeof model === "string" && freePattern.test(model) ? "free-model" : "paid";

/** A body that was read and counted. */
export interface SurfaceBody {
  text: string;
  body: Record<string, unknown>;
  caller: LlmKeyCaller;
}

/** Reads a body and counts its request in its class. Throws `GatewayError`. */
export async function readSurfaceBody(
  context: RequestContext,
  {
    counters,
    rateClassOf,
  }: Pick<Dependencies, "counters"> & { rateClassOf(body: Record<string, unknown>): RateClass },
): Promise<SurfaceBody> {
  const text = await readJsonText(context.request, inferenceBodyBytesMax);
  const body = parseJsonObject(text);
  const caller = context.caller as LlmKeyCaller;
  const counting = countRequest(counters, {
    caller,
    rateClass: rateClassOf(body),
    headers: context.answerHeaders,
  });
  if (counting !== undefined) await counting;
  return { text, body, caller };
}

const text = (description: string) => z.string().optional().describe(description);

/** Request headers that every chat-like route reads, described for documents. */
export const inferenceHeaders = z.object({
  [brandHeader("Provider")]: text(
    "Slug of the provider to use; several, separated by commas, are tried in that order.",
  ),
  [brandHeader("Balance-After-Debit")]: z
    .enum(["true"])
    .optional()
    .describe(
      "Requests the charge and the balance after it in the answer, which waits up to 500 ms for them.",
    ),
  "x-session-id": z
    .string()
    .max(256)
    .optional()
    .describe(
      "Id of a session. Its requests are sent to the same provider; session_id in the body takes precedence.",
    ),
  "HTTP-Referer": text("URL of the app, recorded with the request."),
  "X-Title": text("Name of the app, recorded with the request."),
  traceparent: text("Trace that the request belongs to (W3C Trace Context)."),
});

/** These and the headers of Messages. */
export const messagesHeaders = inferenceHeaders.extend({
  "anthropic-version": text("Version of the dialect, such as 2023-06-01. Optional."),
  "anthropic-beta": text("Beta features of the dialect, passed to providers that support them."),
});

/** These and the headers of Responses. */
export const responsesHeaders = inferenceHeaders.extend({
  [brandHeader("Metadata-Frame")]: z
    .enum(["event", "inline"])
    .optional()
    .describe(
      "How a stream carries its metadata: event sends an additional event after the last one; inline adds it to the last event, for " +
        "clients that fail on unknown events.",
    ),
});

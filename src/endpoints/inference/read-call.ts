import type { TokenCount } from "../../access/rate-limiter.ts";
import type { RateClass } from "../../access/rate-tiers.ts";
import {
  countRequest,
  countsTokens,
  reserveTokens,
  tokenCountOf,
  tokensUsedOf,
  type TokensUsed,
} from "../../access/count-request.ts";
import type { Admission } from "../../billing/ledger/hold-rule.ts";
import type { RequestHeaders } from "../../http/served-request.ts";
import { parseJsonObject, readJsonText } from "../../http/bodies/read-body.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { usePreset } from "../../identity/presets/preset.ts";
import { providerIdIn } from "../../inference/catalog/model.ts";
import type { RequestFile } from "../../inference/dialects/file-parts.ts";
import type { ClientDialect } from "../../inference/dialects/dialect.ts";
import type { PresetSettings } from "../../platform/kernel/models/preset-settings.ts";
import { estimateInputTokens } from "../../inference/dialects/shared/requirements.ts";
import { maxSessionIdLength } from "../../inference/dialects/shared/request-check.ts";
import { chatCall } from "../../inference/pipeline/chat-call.ts";
import type { CallOrigin, ChatCall } from "../../inference/pipeline/inference-call.ts";
import type { Loss } from "../../inference/canonical/request.ts";
import { brandHeader, brand } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { bodyInRun } from "../runs/run-body.ts";
import { backgroundLine } from "./answer-call.ts";
import {
  conversationOf,
  withModelInPath,
  customerOf,
  metadataOf,
  runNamedIn,
} from "./request-names.ts";

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
  /**
   * Returns the body in the dialect where it was written in the form of another one, and what was
   * lost; undefined for every other body. Absent where the route takes no other form.
   */
  reshape?(body: Body): { body: Record<string, unknown>; losses: readonly Loss[] } | undefined;
  /**
   * Returns the body as it is read here, and its text, where the path or another spelling says some
   * of it; absent where both are taken as they came.
   */
  prepare?(sent: SurfaceBody): SurfaceBody;
  /** The body, where it was read before. */
  received?: SurfaceBody;
  /** Request headers that the dialect defines, in lower case. */
  dialectHeaders: readonly string[];
}

/** The parts that read, admit and count a call. */
export type CallServices = Pick<
  Dependencies,
  "counters" | "clock" | "inference" | "presets" | "directory" | "runs" | "files"
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
  const received = await readReceived(context, { reader, services });
  const read = await readPreset(context, { received, reader, services });
  const { counting, tokensUsed } = beginCounting(context, countedCall(read, { reader, services }));
  if (counting !== undefined) await counting;
  return callOf(context, { services, reader, read, counted: { tokensUsed } });
}

/** Serves a request of a chat-like route while it is counted (`whileCounted`). */
export async function withCall<Result>(
  context: RequestContext,
  { reader, services }: { reader: CallReader; services: CallServices },
  serve: (call: ChatCall) => Promise<Result>,
): Promise<Result> {
  const received = await readReceived(context, { reader, services });
  const serveRead = (read: PresetBody): Promise<Result> =>
    whileCounted(
      context,
      { ...countedCall(read, { reader, services }), ticket: context.traceId },
      (counted) => serve(callOf(context, { services, reader, read, counted })),
    );
  const run = runNamedIn(received.body);
  const caller = context.caller as LlmKeyCaller;
  if (run === undefined && caller.run === undefined)
    return serveRead(withPreset(received, { reader, services, caller }));
  const work = async (): Promise<Result> =>
    serveRead(await readPreset(context, { received, reader, services }));
  return run === undefined ? work() : services.runs.door.within(context, run, work);
}

/** A request that is to be counted. */
interface CountedRequest {
  counters: Dependencies["counters"];
  rateClass: RateClass;
  /**
   * Returns the estimated tokens that count against the key's ceiling. Throws where the request is
   * not valid. Absent where the ceiling counts the tokens later or not at all.
   */
  estimateTokens?: (() => number) | undefined;
  /** Names the request to a hold that is requested meanwhile; absent where none is. */
  ticket?: string | undefined;
}

const countedCall = (
  { text, body }: PresetBody,
  { reader, services }: { reader: CallReader; services: CallServices },
): CountedRequest => ({
  counters: services.counters,
  rateClass: rateClassOf(body["model"]),
  estimateTokens: () => {
    reader.validate(body);
    return estimateInputTokens(text, body);
  },
});

/** What the call of a request needs to know of its counting. */
export interface Counted {
  /** Absent where the rate windows have admitted the request. */
  admission?: Admission;
  tokensUsed: TokensUsed | undefined;
}

/**
 * Counts a request in its rate windows, together with its tokens where its key has a ceiling of
 * them. The tokens of an invalid request are not counted. The promise exists only where processes
 * share the windows. Throws `GatewayError`, or rejects with it, where a window is full.
 */
function beginCounting(
  context: RequestContext,
  { counters, rateClass, estimateTokens, ticket }: CountedRequest,
): { counting: Promise<void> | undefined; tokensUsed: TokensUsed | undefined } {
  const caller = context.caller as LlmKeyCaller;
  const { pool, leg } = context.background ?? {};
  if (leg !== undefined) return { counting: undefined, tokensUsed: undefined };
  const isCounted = pool === undefined && countsTokens(caller);
  const tokens = isCounted ? tokensOfValid(caller, estimateTokens) : undefined;
  const counting = countRequest(counters, {
    caller,
    rateClass,
    headers: context.answerHeaders,
    ticket,
    tokens,
    pool,
  });
  return { counting, tokensUsed: tokens && tokensUsedOf(counters, tokens) };
}

/** Returns the tokens to count of a request; undefined where it is not valid. */
function tokensOfValid(
  caller: LlmKeyCaller,
  estimateTokens: (() => number) | undefined,
): TokenCount | undefined {
  if (estimateTokens === undefined) return undefined;
  try {
    return tokenCountOf(caller, estimateTokens);
  } catch {
    // Its error is thrown again once the request is counted.
    return undefined;
  }
}

/**
 * Serves a request while it is counted, where processes share rate windows (decision 0126): no
 * provider is called before they have answered, and the refusal by a full window takes precedence
 * over any other error. Throws `GatewayError`.
 */
export function whileCounted<Result>(
  context: RequestContext,
  request: CountedRequest,
  serve: (counted: Counted) => Promise<Result>,
): Promise<Result> {
  const { counting, tokensUsed } = beginCounting(context, request);
  return counting === undefined
    ? serve({ tokensUsed })
    : serveCounting(serve, { counting, tokensUsed, ticket: request.ticket });
}

async function serveCounting<Result>(
  serve: (counted: Counted) => Promise<Result>,
  {
    counting,
    tokensUsed,
    ticket,
  }: { counting: Promise<void>; tokensUsed: TokensUsed | undefined; ticket: string | undefined },
): Promise<Result> {
  counting.catch(() => undefined);
  try {
    if (ticket === undefined) await counting;
    const served = await serve(
      ticket === undefined
        ? { tokensUsed }
        : { tokensUsed, admission: { ticket, counted: counting } },
    );
    await counting;
    return served;
  } catch (error) {
    await counting;
    throw error;
  }
}

/** The body of a request with its preset applied. */
interface PresetBody {
  text: string;
  body: Body;
  presetId: string | undefined;
  /** What reshaping the body and its preset have lost; absent or empty where nothing was. */
  losses?: readonly Loss[] | undefined;
  /** The files whose contents are in the body; absent where it names none. */
  files?: readonly RequestFile[] | undefined;
}

async function readReceived(
  context: RequestContext,
  { reader, services }: { reader: CallReader; services: CallServices },
): Promise<SurfaceBody> {
  const received =
    reader.received ??
    surfaceBodyOf(context, await readJsonText(context.request, inferenceBodyBytesMax));
  const prepared = reader.prepare?.(received) ?? received;
  if (!prepared.text.includes('"file_id"')) return prepared;
  const { withFileContents } = await import("../files/inline-files.ts");
  return withFileContents(context, { body: prepared.body, files: services.files });
}

/** Returns a body as its run changes it, with its preset applied. Throws `GatewayError`. */
async function readPreset(
  context: RequestContext,
  {
    received,
    reader,
    services,
  }: { received: SurfaceBody; reader: CallReader; services: CallServices },
): Promise<PresetBody> {
  const caller = context.caller as LlmKeyCaller;
  if (caller.run === undefined && runNamedIn(received.body) === undefined)
    return withPreset(received, { reader, services, caller });
  const { files } = received;
  const sent = await bodyInRun(context, received, { deps: services, dialect: reader.dialect });
  return withPreset({ ...sent, files }, { reader, services, caller });
}

/** Returns a body in the dialect of its route, with its preset applied. Throws `GatewayError`. */
function withPreset(
  { text: sent, body: written, files }: Pick<PresetBody, "text" | "body" | "files">,
  {
    reader,
    services,
    caller,
  }: { reader: CallReader; services: CallServices; caller: LlmKeyCaller },
): PresetBody {
  const reshaped = reader.reshape?.(written);
  const { text, body, preset } = usePreset(services.presets, {
    workspaceId: caller.workspace.id,
    presetFields: reader.dialect.presetFields,
    text: reshaped === undefined ? sent : JSON.stringify(reshaped.body),
    body: reshaped?.body ?? written,
    providerIdOf: (name) => providerIdIn(services.inference.catalog(), name) ?? name.toLowerCase(),
  });
  if (preset === undefined)
    return { text, body, presetId: undefined, losses: reshaped?.losses, files };
  const losses = [...(reshaped?.losses ?? []), ...presetLosses(reader.dialect, preset.config)];
  return { text, body, presetId: preset.id, losses, files };
}

/** Returns the settings of a preset that a dialect has no field for. */
const presetLosses = ({ presetFields }: ClientDialect, config: PresetSettings): Loss[] =>
  (presetFields.lost?.(config) ?? []).map((name) => ({
    field: `preset.${name}`,
    reason: "the dialect has no such field",
  }));

/** Returns the call of a request whose body was read, once it is checked. */
function callOf(
  context: RequestContext,
  {
    reader,
    services,
    read: { text, body, presetId, losses, files },
    counted,
  }: {
    reader: CallReader;
    services: CallServices;
    read: PresetBody;
    counted: Counted;
  },
): ChatCall {
  const { idPrefix, dialect } = reader;
  const { clock, inference } = services;
  reader.validate(body);
  if (presetId !== undefined) services.directory.uses.note(presetId, clock.nowMs());
  const caller = context.caller as LlmKeyCaller;
  return chatCall(originOf(context, { idPrefix, body, caller, counted }), {
    dialect,
    text,
    body,
    presetId,
    dialectHeaders: pickHeaders(context.request.headers, reader.dialectHeaders),
    signatures: inference.callSignatures.of(caller.workspace.id),
    losses,
    files,
    nowSeconds: () => Math.floor(clock.nowMs() / 1000),
  });
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
 * Counts the tokens of a request that was counted before, and serves it meanwhile where processes
 * share the window of its key's ceiling. Throws `GatewayError`.
 */
export async function whileTokensCounted<Result>(
  context: RequestContext,
  {
    counters,
    estimateTokens,
    counted,
  }: { counters: Dependencies["counters"]; estimateTokens: () => number; counted?: Counted },
  serve: (counted: Counted) => Promise<Result>,
): Promise<Result> {
  const tokens = tokenCountOf(context.caller as LlmKeyCaller, estimateTokens);
  if (tokens === undefined) return serve(counted ?? { tokensUsed: undefined });
  const ticket = context.traceId;
  const tokensUsed = tokensUsedOf(counters, tokens);
  const counting = reserveTokens(counters, tokens, ticket);
  if (counting === undefined) return serve({ tokensUsed });
  counting.catch(() => undefined);
  // No provider is called before the tokens are counted (`prepare`).
  return serve({ tokensUsed, admission: { ticket, counted: counting } });
}

/** Returns where a request comes from. Throws `GatewayError` where its session's id is too long. */
export function originOf(
  { request, traceId, startedMs, background }: RequestContext,
  {
    idPrefix,
    body,
    caller,
    counted,
  }: { idPrefix: string; body: Body; caller: LlmKeyCaller; counted?: Counted },
): CallOrigin {
  const { headers } = request;
  const sessionId = sessionIdOf(body, headers);
  return {
    traceId,
    generationId: `gen_${traceId}`,
    shownId: idPrefix + traceId,
    caller,
    tokensUsed: counted?.tokensUsed,
    admission: counted?.admission,
    startedMs,
    signalOf: () => request.signal,
    wantsBalance: headers.get(balanceHeader)?.trim().toLowerCase() === "true",
    forcedProviders: forcedProviders(headers),
    sessionId,
    conversation: conversationOf(body, { headers, sessionId }),
    customer: customerOf(body, headers),
    metadata: metadataOf(body),
    origin: headers.get("http-referer") ?? headers.get("referer") ?? undefined,
    appTitle: headers.get("x-title") ?? undefined,
    userAgent: headers.get("user-agent") ?? undefined,
    traceParent: headers.get("traceparent") ?? undefined,
    headerOf: (name) => headers.get(name),
    line: background && backgroundLine(background, traceId),
    leg: background?.leg,
    batchId: background?.batchId,
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

/** The body of a request on a surface other than chat. */
export interface SurfaceBody {
  text: string;
  body: Record<string, unknown>;
  /** The files whose contents are in the body; absent where it names none. */
  files?: readonly RequestFile[] | undefined;
}

/** Reads the body of a request on a surface other than chat. Throws `GatewayError`. */
export const readSurfaceBody = async (context: RequestContext): Promise<SurfaceBody> =>
  surfaceBodyOf(context, await readJsonText(context.request, inferenceBodyBytesMax));

/** Returns the body with this text. Throws `GatewayError` where it is not one JSON object. */
const surfaceBodyOf = (context: RequestContext, text: string): SurfaceBody =>
  withModelInPath(context, { text, body: parseJsonObject(text) });

/**
 * Serves a request on a surface other than chat while it is counted (`whileCounted`). `read` reads
 * and checks the body. Throws `GatewayError`.
 */
export async function withSurfaceCall<Request, Result>(
  context: RequestContext,
  {
    counters,
    idPrefix,
    rateClassOf,
    read,
    estimateTokens,
    received,
  }: Pick<Dependencies, "counters"> & {
    idPrefix: string;
    /** The body, where it was read before. */
    received?: SurfaceBody | undefined;
    rateClassOf(body: Record<string, unknown>): RateClass;
    read(sent: SurfaceBody): Request;
    estimateTokens(request: Request): number;
  },
  serve: (call: SurfaceBody & { origin: CallOrigin; request: Request }) => Promise<Result>,
): Promise<Result> {
  const sent = received ?? (await readSurfaceBody(context));
  const { text, body } = sent;
  const caller = context.caller as LlmKeyCaller;
  return whileCounted(
    context,
    {
      counters,
      rateClass: rateClassOf(body),
      estimateTokens: () => estimateTokens(read(sent)),
      ticket: context.traceId,
    },
    async (counted) => {
      const request = read(sent);
      const origin = originOf(context, { idPrefix, body, caller, counted });
      return serve({ text, body, request, origin });
    },
  );
}

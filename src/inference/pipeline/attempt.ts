import type { AttemptRecord } from "../../insights/generation-record.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { present } from "../catalog/model.ts";
import type { Execution, InferenceDependencies } from "./execution.ts";
import type { InferenceCall, Adapter, AnswerDeviations } from "./inference-call.ts";
import type { WholeAnswer } from "../dialects/shared/exchange.ts";
import {
  StreamFault,
  type ReportedDetails,
  type StreamBreak,
} from "../dialects/shared/stream/stream-fault.ts";
import { throughLeg } from "./batches/batch-leg.ts";
import { throughSocket } from "./provider-sockets/through-socket.ts";
import type { Candidate } from "../routing/candidate.ts";
import {
  classifyStatus,
  classifyTransport,
  emptyAnswer,
  malformedAnswer,
  statusOfErrorObject,
  UpstreamFailure,
  type AttemptFailure,
  type UpstreamError,
} from "../upstream/upstream-failure.ts";
import type { ExchangeTie } from "../upstream/abort-scope.ts";
import type { TargetSigning, UpstreamResponse } from "../upstream/upstream-client.ts";
import type { Purpose } from "./upstream-targets.ts";
import type { MeteredUsage } from "../canonical/response.ts";

/** Bounds, in bytes, on how much of an upstream's answer is read. */
const wholeAnswerBytesMax = 64 * 1024 * 1024;
const errorBytesMax = 64 * 1024;

/** A request that was sent to one candidate, with its unread answer, or the failure. */
export type Sent =
  | { ok: true; response: UpstreamResponse }
  | { ok: false; failure: AttemptFailure };

/** A whole answer that was read, or the failure. */
export type Whole = { ok: true; answer: WholeAnswer } | { ok: false; failure: FailureWithUsage };

/** Sends a request to a candidate. An answer with an error status is read and judged here. */
export async function sendTo(
  deps: Pick<InferenceDependencies, "targetOf" | "upstream">,
  {
    call,
    candidate,
    adapter,
    abortScope,
    purpose = "answer",
  }: {
    call: Pick<InferenceCall, "requirements" | "leg" | "socketTurn">;
    candidate: Pick<Candidate, "model" | "route" | "credential">;
    adapter: Adapter;
    abortScope: ExchangeTie;
    purpose?: Purpose;
  },
): Promise<Sent> {
  const { timeouts } = candidate.route.provider;
  const { stream, mediaAt } = call.requirements;
  // A picture may take two minutes without a sign of life, streamed or not.
  const isSilent = mediaAt !== undefined;
  const firstTokenMs =
    stream && !isSilent ? timeouts.firstTokenMs : (timeouts.wholeAnswerMs ?? timeouts.totalMs);
  const limits = {
    firstTokenMs,
    idleMs: isSilent ? timeouts.totalMs : timeouts.idleMs,
    totalMs: timeouts.totalMs,
  };
  try {
    const { socketTurn: turn } = call;
    if (turn !== undefined && candidate.route.provider.deviations.responsesSocket === true) {
      const sent = { turn, candidate, adapter, timeouts: limits, abortScope };
      const socketed = await throughSocket(deps, sent);
      if (socketed !== undefined) return { ok: true, response: socketed };
    }
    let response: UpstreamResponse;
    if (call.leg !== undefined) response = throughLeg(call.leg, { candidate, adapter });
    else {
      const { requestText: body, requestParts, requestHeaders, requestBody, requestPath } = adapter;
      const target = deps.targetOf(candidate.route, {
        surface: candidate.model.surface,
        stream,
        purpose,
        path: requestPath,
      });
      response = await deps.upstream.send({
        target,
        body: requestBody ?? requestParts ?? body,
        headers:
          target.signing === undefined
            ? requestHeaders
            : await signedHeaders(target.signing, { body, requestHeaders }),
        connectTimeoutMs: timeouts.connectMs,
        timeouts: limits,
        abortScope,
      });
    }
    return isSuccess(response)
      ? { ok: true, response }
      : { ok: false, failure: await readFailure(response, adapter.answerDeviations) };
  } catch (error) {
    if (error instanceof UpstreamFailure) return { ok: false, failure: classifyTransport(error) };
    throw error;
  }
}

/** Sends the request of an execution to a candidate, which may have the files that it names. */
export function sendAttempt(
  execution: Execution,
  { candidate, adapter }: { candidate: Candidate; adapter: Adapter },
): Promise<Sent> {
  const { deps, call, abortScope } = execution;
  if (call.files === undefined) return sendTo(deps, { call, candidate, adapter, abortScope });
  return sendNaming(execution, { candidate, adapter });
}

/** Sends a request that names files of the workspace. */
function sendNaming(
  execution: Execution,
  { candidate, adapter }: { candidate: Candidate; adapter: Adapter },
): Promise<Sent> {
  const { deps, call, abortScope } = execution;
  const send = (sent: Adapter) => sendTo(deps, { call, candidate, adapter: sent, abortScope });
  return import("./provider-files/send-with-files.ts").then(({ sendWithFiles }) =>
    sendWithFiles(execution, { candidate, adapter }, send),
  );
}

const isSuccess = ({ status }: UpstreamResponse): boolean => status >= 200 && status < 300;

/**
 * Returns the headers of one request, including those that authenticate it. Rejects with
 * `UpstreamFailure`.
 */
async function signedHeaders(
  { signer, url, headers }: TargetSigning,
  {
    body,
    requestHeaders,
  }: { body: string; requestHeaders: Readonly<Record<string, string>> | undefined },
): Promise<Record<string, string>> {
  const proof = await signer.headersFor({
    method: "POST",
    url,
    headers: { ...headers, ...requestHeaders },
    body,
  });
  return { ...requestHeaders, ...proof };
}

/**
 * Reads and judges an answer with an error status. Where its body cannot be read, the status alone
 * is judged.
 */
async function readFailure(
  response: UpstreamResponse,
  { meantStatus }: AnswerDeviations,
): Promise<AttemptFailure> {
  // The status already says that the attempt failed, so a stalled body must not delay the next
  // candidate for long.
  response.expectMore();
  const text = await response.readText(errorBytesMax).catch(() => {
    response.abort();
    return "";
  });
  const status = meantStatus?.(response.status, text) ?? response.status;
  return classifyStatus({
    status,
    ...errorDetails(text),
    headers: response.headers,
  });
}

/** The content of an error body in any of the known envelopes. HTML and other text has none. */
interface ErrorDetails {
  message: string | null;
  upstreamCode: string | null;
  upstreamError: UpstreamError | null;
  /** The delay that Google's `RetryInfo` asks for; absent in other envelopes. */
  retryDelay?: string;
}

/** Reads an error body. */
export function errorDetails(text: string): ErrorDetails {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return { message: null, upstreamCode: null, upstreamError: null };
  }
  const outer = (Array.isArray(body) ? body[0] : body) as {
    error?: unknown;
    message?: unknown;
    detail?: unknown;
  } | null;
  const inner = outer?.error;
  const details = (typeof inner === "object" && inner !== null ? inner : (outer ?? {})) as Record<
    string,
    unknown
  >;
  const message = [details["message"], inner, outer?.detail].find(
    (value): value is string => typeof value === "string",
  );
  const { code } = details;
  return {
    message: message ?? null,
    upstreamCode: typeof code === "string" ? code : null,
    upstreamError: upstreamErrorOf(details),
    ...retryInfoOf(details["details"]),
  };
}

/** Returns the delay of Google's `RetryInfo` among the details of an error. */
function retryInfoOf(details: unknown): Pick<ErrorDetails, "retryDelay"> {
  if (!Array.isArray(details)) return {};
  for (const detail of details) {
    const { retryDelay } = Object(detail) as { retryDelay?: unknown };
    if (typeof retryDelay === "string") return { retryDelay };
  }
  return {};
}

/** The most characters that are kept of each member of a provider's error. */
const memberCharactersMax = 200;
/** The most characters of JSON of its details; longer ones are left out whole. */
const detailsCharactersMax = 8_192;

/** Returns the details of a provider's error: an object with Anthropic, which clients act upon. */
function detailsOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return JSON.stringify(value).length > detailsCharactersMax ? undefined : { ...value };
}

/**
 * Returns the members of a provider's error that clients act on. Google names the type `status`.
 */
function upstreamErrorOf({
  code,
  type,
  status,
  param,
  details,
}: Record<string, unknown>): UpstreamError | null {
  const text = (value: unknown): string | undefined =>
    typeof value === "string" ? value.slice(0, memberCharactersMax) : undefined;
  const error = present({
    code: typeof code === "number" ? code : text(code),
    type: text(type) ?? text(status),
    param: text(param),
    details: detailsOf(details),
  });
  return Object.keys(error).length === 0 ? null : error;
}

/**
 * Reads a whole answer and judges whether the client can use it. Synchronous where all of the
 * answer has arrived.
 */
export function readWhole(response: UpstreamResponse, adapter: Adapter): Whole | Promise<Whole> {
  const text = response.takeText?.(wholeAnswerBytesMax);
  return text === undefined
    ? readRest(response, adapter)
    : judged(text, { adapter, status: response.status });
}

async function readRest(response: UpstreamResponse, adapter: Adapter): Promise<Whole> {
  const { status } = response;
  let text: string;
  try {
    text = await response.readText(wholeAnswerBytesMax);
  } catch (error) {
    response.abort();
    if (error instanceof UpstreamFailure)
      return { ok: false, failure: classifyTransport(error, status) };
    throw error;
  }
  return judged(text, { adapter, status });
}

function judged(text: string, judging: Judging): Whole {
  try {
    const whole = judgeText(text, judging);
    return whole.ok ? whole : { ok: false, failure: inWordsOf(judging.adapter, whole.failure) };
  } catch (error) {
    // The JSON is nested too deeply for the call stack.
    if (error instanceof RangeError)
      return {
        ok: false,
        failure: malformedAnswer(judging.status, "the answer is nested too deeply"),
      };
    throw error;
  }
}

/** Returns the failure with the surface's own code for unusable answers. */
function inWordsOf({ unusableCode }: Adapter, failure: FailureWithUsage): FailureWithUsage {
  const unusable = failure.code === "empty_stream" || failure.code === "bad_gateway";
  return unusable && unusableCode !== undefined ? { ...failure, code: unusableCode } : failure;
}

interface Judging {
  adapter: Adapter;
  status: number;
}

function judgeText(written: string, judging: Judging): Whole {
  // A byte order mark is no JSON (RFC 8259, section 8.1), and some servers write one all the same.
  const text = written.charCodeAt(0) === 0xfeff ? written.slice(1) : written;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    return judgeOtherText(text, judging);
  }
  return judgeWhole(text, body, judging);
}

/** Judges a body that is not JSON: it is empty, an unasked event stream, or unreadable. */
function judgeOtherText(text: string, judging: Judging): Whole {
  const {
    status,
    adapter: { answerDeviations },
  } = judging;
  if (text.trim() === "") return { ok: false, failure: emptyAnswer(status) };
  const gathered = looksLikeEvents(text) ? answerDeviations.wholeOfEvents?.(text) : undefined;
  if (gathered === undefined)
    return { ok: false, failure: malformedAnswer(status, "the answer is not valid JSON") };
  if (gathered.ok) return judgeWhole(gathered.text, JSON.parse(gathered.text), judging);
  const { error, fault } = gathered.error;
  if (fault !== "reported")
    return {
      ok: false,
      failure: malformedAnswer(status, "the stream ended before the answer was finished"),
    };
  return {
    ok: false,
    failure: classifyStatus({
      status: error.status ?? statusOfErrorObject(error),
      message: error.message,
      upstreamCode: error.code ?? null,
    }),
  };
}

function judgeWhole(text: string, body: unknown, { status, adapter }: Judging): Whole {
  if (typeof body !== "object" || body === null)
    return { ok: false, failure: malformedAnswer(status, "the answer is no JSON object") };
  const { error } = body as { error?: unknown };
  const read = readAnswer(text, body, adapter);
  if (read instanceof GatewayError && (error === undefined || error === null)) {
    const consumed = adapter.usageOfFailure?.(body);
    return { ok: false, failure: { ...unreadable(read, status), ...(consumed && { consumed }) } };
  }
  const answer = read instanceof GatewayError ? undefined : read;
  if (error !== undefined && error !== null && answer?.hasContent !== true) {
    const details = errorDetails(text);
    const said = statusOfErrorObject(typeof error === "object" ? error : {});
    return {
      ok: false,
      failure: classifyStatus({ status: said, ...details }),
    };
  }
  if (answer === undefined)
    return { ok: false, failure: malformedAnswer(status, "the answer is none of its dialect") };
  return answer.hasContent ? { ok: true, answer } : { ok: false, failure: emptyAnswer(status) };
}

/** Returns the answer, or the reason why the codec cannot read it. */
function readAnswer(
  text: string,
  body: object,
  adapter: Adapter,
): WholeAnswer | GatewayError | undefined {
  try {
    return adapter.readWhole(text, body);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

/**
 * Returns the failure of an answer that reports an error in its body, with that error's words, or
 * of one that is not of its dialect.
 */
function unreadable({ metadata }: GatewayError, status: number): AttemptFailure {
  const { upstream_message: message, upstream_error: upstreamError } = metadata;
  if (typeof message !== "string")
    return malformedAnswer(status, "the answer is none of its dialect");
  const details =
    typeof upstreamError === "object" && upstreamError !== null
      ? upstreamErrorOf({ ...upstreamError })
      : null;
  const { code } = details ?? {};
  return classifyStatus({
    status: statusOfErrorObject({}),
    message,
    upstreamCode: typeof code === "string" ? code : null,
    upstreamError: details,
  });
}

/** Returns the record of an attempt that has ended. */
export function attemptRecord(
  candidate: Candidate,
  ended: {
    status: number | null;
    outcome: AttemptRecord["outcome"];
    reason: string | null;
    durationMs: number;
  },
): AttemptRecord {
  const record: AttemptRecord = {
    provider: candidate.route.provider.id,
    model: candidate.model.id,
    upstreamModel: candidate.route.upstreamModel,
    status: ended.status,
    outcome: ended.outcome,
    reason: ended.reason,
    durationMs: Math.round(ended.durationMs * 100) / 100,
  };
  if (candidate.credential !== undefined) record.credentialSource = candidate.credential.source;
  return record;
}

/** A failed attempt, judged, with any usage that is charged in spite of the failure. */
export interface FailureWithUsage extends AttemptFailure {
  /**
   * The usage that the provider reported for an unusable answer; absent where nothing was
   * generated.
   */
  consumed?: MeteredUsage;
  /** Whether content had come before it, so that the provider has begun. */
  begun?: boolean;
}

/** Judges any error that can break a stream. Errors of the gateway itself are thrown again. */
export function failureOf(error: unknown, status: number): FailureWithUsage {
  if (error instanceof StreamFault) return failureOfBreak(error.fault, status);
  if (error instanceof UpstreamFailure) return classifyTransport(error, status);
  if (error instanceof RangeError)
    return malformedAnswer(status, "an event of the stream is too large");
  // Members are read from an event's text, and this event is not a JSON object.
  if (error instanceof SyntaxError)
    return malformedAnswer(status, "an event of the stream has another shape than its dialect's");
  throw error;
}

function failureOfBreak(fault: StreamBreak, status: number): FailureWithUsage {
  if (fault.kind === "empty") return emptyAnswer(status);
  if (fault.kind === "malformed") return malformedAnswer(status, fault.observation);
  const { details, consumed } = fault;
  return { ...reportedFailure(details), ...(consumed && { consumed }) };
}

const reportedFailure = (details: ReportedDetails): AttemptFailure =>
  classifyStatus({
    status: statusOfErrorObject(details),
    message: typeof details.message === "string" ? details.message : null,
    upstreamCode: typeof details.code === "string" ? details.code : null,
    upstreamError: errorInStream(details),
  });

/** Returns the members of an error event that clients act upon; its type has become the status. */
function errorInStream({ code, details }: ReportedDetails): UpstreamError | null {
  const error = present({
    code: typeof code === "string" ? code : undefined,
    details: detailsOf(details),
  });
  return Object.keys(error).length === 0 ? null : error;
}

/** Returns whether the answer to a request for one JSON object is an event stream. */
const looksLikeEvents = (text: string): boolean =>
  /^\uFEFF?\s*(?:data|event|id|retry)?:/.test(text);

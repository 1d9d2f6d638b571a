import type { ErrorCode } from "../../platform/kernel/errors.ts";
import { type RetryHint, retryAfterSecondsOf } from "./retry-after.ts";

/**
 * The point at which an exchange with an upstream failed, before any HTTP status could be judged.
 */
export type TransportFault =
  | "connect_failed"
  | "connect_timeout"
  | "proxy_refused"
  | "tls_failed"
  | "first_token_timeout"
  | "idle_timeout"
  | "total_timeout"
  | "connection_closed"
  | "malformed_response"
  | "response_too_large"
  | "aborted"
  | "shutting_down";

/** A transport failure. `sent` says whether the upstream may have received the request. */
export class UpstreamFailure extends Error {
  readonly sent: boolean;

  constructor(
    readonly fault: TransportFault,
    message: string,
    options: { sent: boolean; cause?: unknown },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "UpstreamFailure";
    this.sent = options.sent;
  }
}

/** The reason for which another candidate was tried: the contract's fallback reasons. */
type FallbackReason =
  | "rate_limited"
  | "timeout"
  | "model_unavailable"
  | "credential_error"
  | "upstream_error"
  | "not_attempted";

/**
 * A failed attempt, judged: the error that the caller would see, and whether another candidate may
 * succeed.
 */
export interface AttemptFailure {
  code: ErrorCode;
  reason: FallbackReason;
  /** Whether the next candidate is tried. */
  failover: boolean;
  /** Whether the failure is the provider's own, so that it counts as an outage. */
  outage: boolean;
  upstreamStatus: number | null;
  /** The provider's own words, verbatim; null when it said nothing. */
  upstreamMessage: string | null;
  /**
   * The gateway's observation, where the provider said nothing; null when the status says it all.
   */
  observation: string | null;
  /** The provider's own error code, such as `context_length_exceeded`. */
  upstreamCode: string | null;
  /** Further members of the provider's own error; null where it sent none. */
  upstreamError: UpstreamError | null;
  retryAfterSeconds?: number;
  /** Whether no byte of the request was sent, so that the provider cannot have begun. */
  unsent?: true;
}

/** A provider's own error, beside its message. Members that it did not send are absent. */
export interface UpstreamError {
  code?: string | number;
  type?: string;
  param?: string;
  /** Anthropic's object, with its `error_code`. */
  details?: Readonly<Record<string, unknown>>;
}

type Judgement = Pick<AttemptFailure, "code" | "reason" | "failover" | "outage">;

const judge = (
  code: ErrorCode,
  reason: FallbackReason,
  options: { failover: boolean; outage: boolean },
): Judgement => ({ code, reason, ...options });

const elsewhere = { failover: true, outage: true };
const elsewhereWithoutBlame = { failover: true, outage: false };
const final = { failover: false, outage: false };

const byStatus: Record<number, Judgement> = {
  400: judge("bad_request", "upstream_error", final),
  401: judge("upstream_401", "credential_error", elsewhereWithoutBlame),
  402: judge("upstream_error", "credential_error", elsewhereWithoutBlame),
  403: judge("upstream_403", "credential_error", elsewhereWithoutBlame),
  404: judge("model_unavailable", "model_unavailable", elsewhereWithoutBlame),
  // A proxy on the way requires other credentials (RFC 9110, 15.5.8), so no provider has seen the
  // request.
  407: judge("bad_gateway", "upstream_error", elsewhereWithoutBlame),
  408: judge("request_timeout", "timeout", elsewhere),
  413: judge("content_too_large", "upstream_error", elsewhereWithoutBlame),
  422: judge("unprocessable_entity", "upstream_error", final),
  429: judge("rate_limit_exceeded", "rate_limited", elsewhere),
  504: judge("upstream_timeout", "timeout", elsewhere),
};

const contextPattern =
  /context.{0,20}(?:length|window)|maximum context|prompt is too long|too many (?:input )?tokens/i;

/**
 * Judges statuses without a row: 5xx is the provider's failure, 4xx the caller's, and a redirect or
 * the like is no valid answer.
 */
function judgeOther(status: number): Judgement {
  if (status >= 500) return judge("upstream_error", "upstream_error", elsewhere);
  return status >= 400
    ? judge("bad_request", "upstream_error", final)
    : judge("bad_gateway", "upstream_error", elsewhere);
}

/**
 * Judgements of a conversation that the provider does not hold (Anthropic's threads). The caller
 * sends it in full then, while no other provider could hold it.
 */
const threadFaults: Record<string, Judgement> = {
  thread_not_found: judge("not_found", "upstream_error", final),
  thread_already_continued: judge("conflict", "upstream_error", final),
  thread_continue_in_flight: judge("conflict", "upstream_error", final),
};

/** Judges an answer with an error status, or with an error as its body in spite of its status. */
export function classifyStatus(answer: {
  status: number;
  message: string | null;
  upstreamCode: string | null;
  upstreamError?: UpstreamError | null;
  /** The headers of the answer; absent for an error that its body or a stream reports. */
  headers?: RetryHint["headers"];
  retryDelay?: RetryHint["retryDelay"];
}): AttemptFailure {
  const { status } = answer;
  let judgement = byStatus[status] ?? judgeOther(status);
  const context =
    answer.upstreamCode === "context_length_exceeded" || contextPattern.test(answer.message ?? "");
  const threadFault = threadFaults[String(answer.upstreamError?.details?.["error_code"])];
  if (threadFault !== undefined) judgement = threadFault;
  if (context && status >= 400 && status < 500 && status !== 429)
    judgement = judge("context_length_exceeded", "upstream_error", final);
  const retryAfterSeconds = retryAfterSecondsOf(answer);
  return {
    ...judgement,
    upstreamStatus: status,
    upstreamMessage: answer.message,
    observation: null,
    upstreamCode: answer.upstreamCode,
    upstreamError: answer.upstreamError ?? null,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

/**
 * Judges a transport failure. `status` is that of the head, where one has come. An aborted exchange
 * is no provider's fault and ends the request, and so does the gateway's own end.
 */
export function classifyTransport(
  failure: UpstreamFailure,
  status: number | null = null,
): AttemptFailure {
  const timeout = failure.fault.endsWith("_timeout");
  const judgement =
    ownFaults[failure.fault] ??
    (timeout
      ? judge("upstream_timeout", "timeout", elsewhere)
      : judge("bad_gateway", "upstream_error", elsewhere));
  return {
    ...judgement,
    upstreamStatus: status,
    upstreamMessage: null,
    observation: faultTexts[failure.fault],
    upstreamCode: null,
    upstreamError: null,
    ...(!failure.sent && { unsent: true }),
  };
}

/** Failures that are no provider's. */
const ownFaults: Partial<Record<TransportFault, Judgement>> = {
  aborted: judge("client_closed_request", "upstream_error", final),
  shutting_down: judge("service_unavailable", "upstream_error", final),
};

/**
 * The message to callers for each transport fault. The system's own words may name hosts, so they
 * stay in the log.
 */
const faultTexts: Record<TransportFault, string> = {
  connect_failed: "no connection could be opened",
  connect_timeout: "no connection could be opened in time",
  proxy_refused: "the proxy refused to open a connection",
  tls_failed: "the TLS handshake failed",
  first_token_timeout: "nothing came in time",
  idle_timeout: "the answer stalled",
  total_timeout: "the answer took too long",
  connection_closed: "the connection was closed before the answer was complete",
  malformed_response: "the answer is not valid HTTP",
  response_too_large: "the answer is too large",
  aborted: "the request was abandoned",
  shutting_down: "the gateway is shutting down",
};

/** Returns the failure of an answer that ended without content. */
export const emptyAnswer = (status: number): AttemptFailure => ({
  ...judge("empty_stream", "upstream_error", elsewhere),
  upstreamStatus: status,
  upstreamMessage: null,
  observation: null,
  upstreamCode: null,
  upstreamError: null,
});

/** Returns the failure of an answer that could not be understood. */
export const malformedAnswer = (status: number, observation: string): AttemptFailure => ({
  ...judge("bad_gateway", "upstream_error", elsewhere),
  upstreamStatus: status,
  upstreamMessage: null,
  observation,
  upstreamCode: null,
  upstreamError: null,
});

/**
 * Returns the status that an error object inside a 200 means: its numeric code, or what its type
 * says.
 */
export function statusOfErrorObject(error: {
  code?: unknown;
  type?: unknown;
  status?: unknown;
}): number {
  for (const value of [error.code, error.status]) {
    const status =
      typeof value === "string" || typeof value === "number" ? Number(value) : Number.NaN;
    if (Number.isInteger(status) && status >= 400 && status < 600) return status;
  }
  const text = [error.type, error.code, error.status]
    .filter((word) => typeof word === "string")
    .join(" ");
  return statusByWord.find(([word]) => word.test(text))?.[1] ?? 502;
}

/**
 * The statuses for the words that OpenAI, Anthropic and Google use for kinds of errors; the first
 * match counts.
 */
const statusByWord: readonly (readonly [word: RegExp, status: number])[] = [
  [/rate.?limit|quota|resource_exhausted/i, 429],
  [/context_length|invalid_request|invalid_prompt|invalid_argument|failed_precondition/i, 400],
  [/permission/i, 403],
  [/auth|api_key/i, 401],
  [/billing|payment/i, 402],
  [/not_found/i, 404],
  [/too_large/i, 413],
  [/timeout|deadline_exceeded/i, 504],
  [/overloaded|unavailable/i, 503],
];

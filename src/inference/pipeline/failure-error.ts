import type { AttemptRecord } from "../../insights/generation-record.ts";
import { errorCatalog, GatewayError, type ErrorCode } from "../../platform/kernel/errors.ts";
import { usdFromNano, usdText } from "../../platform/kernel/money.ts";
import type { JsonObject } from "../canonical/json.ts";
import { totalInputTokens, totalOutputTokens, type Usage } from "../../platform/kernel/usage.ts";
import type { LeftOut } from "../routing/candidate.ts";
import type { AttemptFailure } from "../upstream/upstream-failure.ts";
import type { Provider } from "../catalog/model.ts";
import type { MeteredUsage } from "../canonical/response.ts";
import { capFieldOf } from "../dialects/index.ts";
import type { InferenceCall } from "./inference-call.ts";
import { refusalOf } from "./credentials/provider-credentials.ts";
import type { FailedAttempt } from "./execution.ts";

const messages: Partial<Record<ErrorCode, string>> = {
  bad_request: "The provider refused the request as invalid",
  unprocessable_entity: "The provider could not process the request",
  content_too_large: "The provider refused the request as too large",
  context_length_exceeded: "The request does not fit the model's context window",
  upstream_401: "The provider did not accept the gateway's credential",
  upstream_403: "The provider denied the request",
  model_unavailable: "The provider does not serve this model",
  rate_limit_exceeded: "The provider's own rate limit is reached",
  request_timeout: "The provider gave up waiting",
  upstream_timeout: "The provider did not answer in time",
  empty_stream: "The provider ended its answer without content",
  upstream_error: "The provider failed",
  upstream_exhausted: "Every provider that could serve this model failed",
  upstream_invalid_response: "The provider's answer could not be understood",
  bad_gateway: "The provider could not be reached or its answer could not be read",
};

/** The messages for failures with a provider key, the caller's own or a donated one. */
const keyMessages: Readonly<Record<string, Partial<Record<ErrorCode, string>>>> = {
  own_byok: {
    upstream_401: "The provider did not accept your own key",
    upstream_402: "The provider has nothing left to spend for your own key",
    rate_limit_exceeded: "The provider's rate limit for your own key is reached",
  },
  pool: {
    upstream_401: "The provider did not accept the donated key",
    rate_limit_exceeded: "The provider's rate limit for the donated key is reached",
  },
};

/**
 * Returns the code for several failures: the code they share, where it says more than that all of
 * them failed.
 */
function commonCode(attempts: readonly FailedAttempt[]): ErrorCode {
  const last = attempts.at(-1)?.failure.code ?? "service_unavailable";
  if (attempts.length <= 1 || !attempts.at(-1)?.failure.failover) return last;
  const same = attempts.every(({ failure }) => failure.code === last);
  return same && last !== "upstream_error" && last !== "bad_gateway" ? last : "upstream_exhausted";
}

/**
 * Returns whether the same request may succeed later. It cannot where the code rules it out, where
 * the provider's account needs attention, such as a spent quota (OpenAI's 429), or where every
 * provider was asked.
 */
const mayRetry = (code: ErrorCode, failure: AttemptFailure): boolean =>
  errorCatalog[code].retry &&
  failure.failover &&
  code !== "upstream_exhausted" &&
  failure.reason !== "credential_error" &&
  refusalOf(failure) === undefined;

/** The facts for an error, beside its attempts. */
export interface FailureContext {
  /** The candidates that were not called. */
  heldBack?: readonly LeftOut[];
  /** The client's body, whose fields a provider's error may name. */
  body?: Readonly<Record<string, unknown>>;
  headers?: Readonly<Record<string, string>>;
  /** The charge in spite of the failure, because a model generated tokens but no usable answer. */
  charge?: { generationId: string; chargedNano: bigint; usage: Usage } | undefined;
}

/** Returns the charge of a failed request in the form in which its error reports it. */
function chargeMetadata({
  generationId,
  chargedNano,
  usage,
}: NonNullable<FailureContext["charge"]>): JsonObject {
  const chargedUsd = usdFromNano(chargedNano);
  const used = {
    prompt_tokens: totalInputTokens(usage),
    completion_tokens: totalOutputTokens(usage),
    cost: chargedUsd,
  };
  return { generation_id: generationId, charged_usd: chargedUsd, usage: used };
}

/**
 * Returns the client's field that a provider's error names; undefined where the client sent no
 * field of that name.
 */
function paramOf(
  { upstreamError, failover }: AttemptFailure,
  body: FailureContext["body"],
): string | undefined {
  const param = upstreamError?.param;
  if (typeof param !== "string" || failover || body === undefined) return undefined;
  return Object.hasOwn(body, param.split(/[.[]/, 1)[0] ?? "") ? param : undefined;
}

/** Returns the error of a request that was under way when the gateway ended. */
const shuttingDown = (headers: Readonly<Record<string, string>>): GatewayError =>
  new GatewayError(
    "service_unavailable",
    "The gateway is shutting down and ended the request before its answer was complete. Send it again.",
    { headers, retryAfterSeconds: 1, metadata: { reason: "shutting_down" } },
  );

/**
 * Builds the caller's error when the last attempt has failed. It says who refused and in which
 * words, and lists every attempt and every candidate that was not called.
 */
export function errorOfAttempts(
  attempts: readonly FailedAttempt[],
  { heldBack = [], body, headers = {}, charge }: FailureContext = {},
): GatewayError {
  const last = attempts.at(-1);
  const code = commonCode(attempts);
  if (last === undefined)
    return new GatewayError("service_unavailable", "No healthy provider is left for this model.");
  const { failure, record } = last;
  if (code === "service_unavailable") return shuttingDown(headers);
  const message =
    keyMessages[record.credentialSource ?? ""]?.[code] ?? messages[code] ?? "The provider failed";
  const reason = failure.upstreamMessage ?? failure.observation;
  const param = paramOf(failure, body);
  const said = reason === null ? `${message}.` : `${message}: ${reason}`;
  const cost =
    charge === undefined || charge.chargedNano === 0n
      ? ""
      : ` What it generated was charged: $${usdText(charge.chargedNano)}.`;
  return new GatewayError(code, said + cost, {
    fault: "upstream",
    headers,
    ...(param === undefined ? {} : { param }),
    retry: mayRetry(code, failure),
    ...(failure.retryAfterSeconds === undefined
      ? {}
      : { retryAfterSeconds: failure.retryAfterSeconds }),
    metadata: {
      upstream_backend: record.provider,
      ...(failure.upstreamStatus === null ? {} : { upstream_status: failure.upstreamStatus }),
      ...(failure.upstreamMessage === null ? {} : { upstream_message: failure.upstreamMessage }),
      ...(failure.upstreamError === null ? {} : { upstream_error: failure.upstreamError }),
      // A failure that goes to the next candidate ends a request only when no candidate is left. The
      // contract sends readers of such an error to its attempts, and one attempt is a list too.
      ...(attempts.length > 1 || failure.failover
        ? {
            upstream_attempts: attempts.map(({ record: attempt, failure: judged }) => ({
              backend: attempt.provider,
              model: attempt.model,
              status: attempt.status,
              code: judged.code,
              reason: judged.reason,
              message: judged.upstreamMessage ?? judged.observation,
              duration_ms: attempt.durationMs,
            })),
          }
        : {}),
      ...(charge && chargeMetadata(charge)),
      ...(heldBack.length > 0
        ? { left_out: heldBack.slice(0, 20).map(({ provider, rule }) => ({ provider, rule })) }
        : {}),
    },
  });
}

/** Credentials of local servers, such as `none`, are ordinary words and not secret. */
const secretLengthMin = 8;

/**
 * Removes the platform's credential from a failure's texts: some providers repeat the key that they
 * refuse, and callers read those texts.
 */
export function withoutCredential(failure: AttemptFailure, { apiKey }: Provider): AttemptFailure {
  if (apiKey === undefined || apiKey.length < secretLengthMin) return failure;
  const { upstreamMessage, upstreamError } = failure;
  const tells =
    upstreamError !== null &&
    JSON.stringify(upstreamError).includes(JSON.stringify(apiKey).slice(1, -1));
  if (!tells && upstreamMessage?.includes(apiKey) !== true) return failure;
  const message = upstreamMessage?.replaceAll(apiKey, "[credential]") ?? null;
  return { ...failure, upstreamMessage: message, upstreamError: tells ? null : upstreamError };
}

const isFailure = (value: unknown): value is AttemptFailure =>
  typeof value === "object" && value !== null && "failover" in value;

/**
 * Returns the error that the client of a stream receives, for any failure that broke the stream.
 */
export function asStreamError(
  failure: unknown,
  {
    deps,
    ...context
  }: {
    deps: { errorAddress(code: ErrorCode): string };
    attempt: AttemptRecord;
    provider: Provider;
  },
): GatewayError {
  const error = streamError(failure, context);
  error.metadata["doc_url"] ??= deps.errorAddress(error.code);
  return error;
}

function streamError(
  failure: unknown,
  context: { attempt: AttemptRecord; provider: Provider },
): GatewayError {
  if (isFailure(failure))
    return errorOfAttempts([
      { record: context.attempt, failure: withoutCredential(failure, context.provider) },
    ]);
  if (failure instanceof GatewayError) return failure;
  return new GatewayError("internal_server_error", "The gateway failed on this stream.", {
    cause: failure,
  });
}

/**
 * Builds the error for an answer without content that the provider charges for: the model spent the
 * output cap on reasoning.
 */
export function spentOnReasoning(
  { recordedAs, generationId }: Pick<InferenceCall, "recordedAs" | "generationId">,
  {
    metered,
    chargedNano,
    headers,
  }: { metered: MeteredUsage; chargedNano: bigint; headers: Record<string, string> },
): GatewayError {
  const param = capFieldOf(recordedAs);
  const promptTokens = totalInputTokens(metered.usage);
  const completionTokens = totalOutputTokens(metered.usage);
  const chargedUsd = usdFromNano(chargedNano);
  const message =
    "The model spent the whole output budget on reasoning and produced no content. " +
    `Raise ${param} to at least 256, or set stream: true. ` +
    `It used ${promptTokens} input and ${completionTokens} output tokens, and $${usdText(chargedNano)} was charged.`;
  const metadata = {
    generation_id: generationId,
    charged_usd: chargedUsd,
    usage: { prompt_tokens: promptTokens, completion_tokens: completionTokens, cost: chargedUsd },
  };
  return new GatewayError("max_tokens_too_small", message, { param, metadata, headers });
}

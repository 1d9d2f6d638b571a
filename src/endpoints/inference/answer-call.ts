import type { AnswerHeaders } from "../../http/answer-headers.ts";
import type { BackgroundWork } from "../../http/request-context.ts";
import { bytesAnswer, eventStreamHeaders, Reply } from "../../http/reply.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import type { Loss } from "../../inference/canonical/request.ts";
import type { ShownAnswer } from "../../inference/dialects/shared/exchange.ts";
import type { UpstreamRoute } from "../../inference/catalog/model.ts";
import { execute } from "../../inference/pipeline/execute.ts";
import type { ServedBytes, ServedStream } from "../../inference/pipeline/stream/open-stream.ts";
import type { ServedWhole, ServedFacts, Settled } from "../../inference/pipeline/served-answer.ts";
import {
  headerText,
  serverTimingText,
  timingsOf,
  metadataText,
  showsNoCost,
} from "../../inference/pipeline/answer-metadata.ts";
import type { BackgroundLine, InferenceCall } from "../../inference/pipeline/inference-call.ts";
import type { Candidate } from "../../inference/routing/candidate.ts";
import { brandHeader, lowerBrandHeader } from "../../platform/kernel/brand.ts";
import type { FrameSource } from "../../platform/kernel/frame-source.ts";
import { usdSixDecimals, usdText } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { encodeContractError, type ErrorEncoder } from "../../http/error-envelope.ts";
import { GatewayError, type ErrorCode } from "../../platform/kernel/errors.ts";

/** Returns an error with another code; everything else about it stays. */
const renamed = (
  error: GatewayError,
  code: ErrorCode,
  metadata: Readonly<Record<string, unknown>> = {},
): GatewayError =>
  new GatewayError(code, error.message, {
    fault: error.fault,
    retry: error.retry,
    metadata: { ...error.metadata, ...metadata },
    ...(error.param !== undefined && { param: error.param }),
    ...(error.retryAfterSeconds !== undefined && { retryAfterSeconds: error.retryAfterSeconds }),
  });

/** The names that the contract gives a surface's errors, where they differ. */
interface SurfaceErrorNames {
  names: Partial<Record<ErrorCode, ErrorCode>>;
  /** The `metadata.type` of these codes. */
  types?: Partial<Record<ErrorCode, string>>;
}

/** Returns the encoder of the contract's envelope with the names of one surface. */
export const surfaceErrors =
  ({ names, types = {} }: SurfaceErrorNames): ErrorEncoder =>
  (error, context) => {
    const code = names[error.code] ?? error.code;
    const type = types[code];
    const same = code === error.code && type === undefined;
    return encodeContractError(
      same ? error : renamed(error, code, type === undefined ? {} : { type }),
      context,
    );
  };

/**
 * Returns the same for Cohere's clients, which read a message beside the envelope. Source:
 * https://docs.cohere.com/reference/errors
 */
export function cohereErrors(names: SurfaceErrorNames): ErrorEncoder {
  const encode = surfaceErrors(names);
  return (error, context) => ({ ...encode(error, context), message: error.message });
}

/**
 * Names for providers that cannot be reached or whose answer is cut: surfaces other than chat have
 * one name for both.
 */
export const unreachable = {
  bad_gateway: "upstream_error",
  empty_stream: "upstream_error",
} as const;

/** Returns the body of a whole answer in its client's dialect. */
export const wholeText = (served: ServedWhole, call: InferenceCall): string =>
  served.answer.render(shownOf(served, call));

/** Returns what a whole answer shows beside its content. */
export const shownOf = (
  { answer, candidate, metered, settled, fallback, attempts, timing }: ServedWhole,
  call: InferenceCall,
): ShownAnswer => ({
  id: call.shownId,
  model: candidate.model.id,
  metered,
  chargedNano: settled.chargedNano,
  isByok: settled.isByok,
  free: showsNoCost({ settled, candidate }),
  fallback,
  metadataText: () =>
    metadataText({
      call,
      candidate,
      settled,
      attempts,
      timing: { ...timing, settledMs: settled.settledMs },
      answerLosses: answer.losses,
    }),
});

/** Returns what a call needs to commit its answer with its charge. */
export const backgroundLine = (work: BackgroundWork, traceId: string): BackgroundLine => ({
  rowOf: (served, call) =>
    work.rowOf(
      served && {
        text: wholeText(served, call),
        traceId,
        costNano: served.settled.chargedNano,
      },
    ),
});

/** Returns a whole answer with its headers; `text` is its body. */
export function wholeResponse(
  context: RequestContext,
  { served, call, text }: { served: ServedWhole; call: InferenceCall; text: string },
): Reply {
  const headers = servedHeaders(served, {
    gathered: context.answerHeaders,
    endMs: served.settled.settledMs,
  });
  headers.share(jsonHeaders);
  if (call.wantsBalance) addSettledHeaders(headers, served.settled);
  return new Reply(text, { headers });
}

/**
 * Returns a stream with the headers that are known when it begins; `frames` are what the client is
 * sent.
 */
export function streamResponse(
  context: RequestContext,
  { served, nowMs, frames }: { served: ServedStream; nowMs: number; frames: FrameSource },
): Reply {
  const headers = servedHeaders(served, { gathered: context.answerHeaders, endMs: nowMs });
  headers.share(eventStreamHeaders);
  return new Reply(frames, { headers });
}

/** Returns an answer of bytes with the headers that are known when it begins, and further ones. */
export function bytesResponse(
  context: RequestContext,
  {
    served,
    nowMs,
    body,
    headers: more,
    settled,
  }: {
    served: ServedBytes;
    nowMs: number;
    body: ReadableStream<Uint8Array> | Blob;
    headers: Readonly<Record<string, string>>;
    /** The charge, for a caller that asked for it and got the whole answer. */
    settled?: Settled | undefined;
  },
): Response {
  const headers = servedHeaders(served, { gathered: context.answerHeaders, endMs: nowMs });
  if (settled !== undefined) addSettledHeaders(headers, settled);
  const init = { headers: { ...headers.all, ...more } };
  return body instanceof Blob ? new Response(body, init) : bytesAnswer(body, init);
}

/** Serves a call, whole or streamed. Throws `GatewayError`. */
export async function answerCall(
  context: RequestContext,
  call: InferenceCall,
  { inference, clock }: Pick<Dependencies, "inference" | "clock">,
): Promise<Reply> {
  const served = await execute(inference, call);
  if (served.kind === "whole")
    return wholeResponse(context, { served, call, text: wholeText(served, call) });
  return streamResponse(context, { served, nowMs: clock.monotonicMs(), frames: served.stream });
}

const jsonHeaders = { "content-type": "application/json" };

const names = {
  model: lowerBrandHeader("Model"),
  upstreamModel: lowerBrandHeader("Upstream-Model"),
  providerChain: lowerBrandHeader("Provider-Chain"),
  credentialSource: lowerBrandHeader("Credential-Source"),
  requestedModel: lowerBrandHeader("Requested-Model"),
  fallbackReason: lowerBrandHeader("Fallback-Reason"),
  balanceAtAdmission: lowerBrandHeader("Credits-Balance-At-Admission"),
  balanceAfterDebit: lowerBrandHeader("Credits-Balance-After-Debit"),
  creditsCharged: lowerBrandHeader("Credits-Charged"),
  translationLoss: lowerBrandHeader("Translation-Loss"),
  sessionMoved: lowerBrandHeader("Session-Moved"),
  outputCap: lowerBrandHeader("Output-Cap"),
};

/**
 * The header of an answer whose length was capped at what its caller can pay for, described for
 * documents.
 */
export const outputCapHeader: Readonly<Record<string, string>> = {
  [brandHeader("Output-Cap")]:
    "The output cap that the provider was given in place of a larger one, since the key and the balance bear no " +
    "more. Where fewer than 16 tokens can be paid the answer is 402 insufficient_balance with metadata {reason, worst_case_usd, " +
    "available_usd, held_usd, affordable_output_tokens}, and Retry-After while other requests hold what is missing.",
};

/** Headers that are the same for every answer of a model on a route. */
const routeHeaders = new WeakMap<UpstreamRoute, Record<string, string>>();

function headersOfRoute({ model, route, credential }: Candidate): Record<string, string> {
  let headers = routeHeaders.get(route);
  if (headers === undefined) {
    headers = {
      [names.model]: headerText(model.id),
      [names.upstreamModel]: headerText(route.upstreamModel),
      [names.credentialSource]: credential?.source ?? "platform",
      // Nearly always one provider was called; a longer chain replaces this value.
      [names.providerChain]: route.provider.id,
    };
    routeHeaders.set(route, headers);
  }
  return headers;
}

/** The most characters for the names of losses. Beyond it, only the record has the list. */
const lossCharactersMax = 2_000;

/**
 * Returns the fields that a translation dropped or changed, as a list of names (RFC 9110, 5.6.1).
 */
function lossText(losses: readonly Loss[]): string {
  let text = "";
  for (const field of new Set(losses.map((loss) => loss.field))) {
    const more = text === "" ? headerText(field) : `${text}, ${headerText(field)}`;
    if (more.length > lossCharactersMax) return `${text}, ...`;
    text = more;
  }
  return text;
}

/**
 * Returns the headers of a served inference response that say who served it (contract: "Response
 * headers"), added to those that the request has collected so far.
 */
function servedHeaders(
  served: ServedFacts,
  { gathered, endMs }: { gathered: AnswerHeaders; endMs: number },
): AnswerHeaders {
  const { candidate, attempts, fallback, balanceAtAdmissionNano, timing } = served;
  const { startedMs, firstSendMs } = timing;
  const headers = gathered.copy();
  headers.share(headersOfRoute(candidate));
  if (attempts.length > 1)
    headers.set(names.providerChain, attempts.map(({ provider }) => provider).join("->"));
  headers.set(
    "server-timing",
    serverTimingText(timingsOf({ startedMs, firstSendMs, endMs, attempts })),
  );
  if (balanceAtAdmissionNano !== undefined)
    headers.set(names.balanceAtAdmission, String(usdSixDecimals(balanceAtAdmissionNano)));
  if (served.losses.length > 0) headers.set(names.translationLoss, lossText(served.losses));
  if (served.outputCap !== undefined) headers.set(names.outputCap, String(served.outputCap));
  if (served.sessionMoved) headers.set(names.sessionMoved, "true");
  if (fallback !== undefined) {
    headers.set(names.requestedModel, headerText(fallback.requestedModel));
    headers.set(names.fallbackReason, fallback.reason);
  }
  return headers;
}

/** Adds the charge and the balance after it for callers that asked; nothing for free requests. */
function addSettledHeaders(headers: AnswerHeaders, settled: Settled): void {
  if (settled.free) return;
  headers.set(names.creditsCharged, usdText(settled.chargedNano));
  headers.set(names.balanceAfterDebit, String(usdSixDecimals(settled.balanceAfterNano)));
}

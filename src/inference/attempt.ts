import type { AttemptRecord } from "../insights/generation-record.ts";
import type { ChatCall } from "./chat-call.ts";
import { wantsStream } from "./chat-call.ts";
import { readWholeAnswer, type WholeAnswer } from "./chat-whole.ts";
import { completionOfEvents, looksLikeEvents } from "./completion-of-events.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import { passthroughBody } from "./passthrough-request.ts";
import type { Candidate } from "./routing/candidate.ts";
import {
  classifyStatus, classifyTransport, emptyAnswer, malformedAnswer, statusOfErrorObject, type AttemptFailure,
} from "./upstream/classify-failure.ts";
import type { Lifeline } from "./upstream/lifeline.ts";
import type { UpstreamResponse } from "./upstream/upstream-client.ts";
import { UpstreamFailure } from "./upstream/upstream-failure.ts";

/** Bounds on what is read of an upstream's answer, in bytes. */
const wholeAnswerBytesMax = 64 * 1024 * 1024;
const errorBytesMax = 64 * 1024;

/** A request that was sent to one candidate: its answer still to be read, or the failure. */
export type Sent = { ok: true; response: UpstreamResponse } | { ok: false; failure: AttemptFailure };

/** A whole answer that was read, or the failure. */
export type Whole = { ok: true; answer: WholeAnswer } | { ok: false; failure: AttemptFailure };

/** Sends a request to a candidate. A status that says failure is read and judged here. */
export async function sendTo(
  deps: InferenceDependencies,
  { call, candidate, lifeline }: { call: ChatCall; candidate: Candidate; lifeline: Lifeline },
): Promise<Sent> {
  const { timeouts } = candidate.route.provider;
  const firstTokenMs = wantsStream(call) ? timeouts.firstTokenMs : timeouts.wholeAnswerMs ?? timeouts.totalMs;
  try {
    const response = await deps.upstream.send({
      target: deps.targetOf(candidate.route),
      body: passthroughBody(call, candidate),
      connectTimeoutMs: timeouts.connectMs,
      timeouts: { firstTokenMs, idleMs: timeouts.idleMs, totalMs: timeouts.totalMs },
      lifeline,
    });
    if (response.status >= 200 && response.status < 300) return { ok: true, response };
    return { ok: false, failure: await readFailure(response) };
  } catch (error) {
    if (error instanceof UpstreamFailure) return { ok: false, failure: classifyTransport(error) };
    throw error;
  }
}

/** Reads and judges an answer whose status says failure; a body that cannot be read leaves the status. */
async function readFailure(response: UpstreamResponse): Promise<AttemptFailure> {
  // The refusal is known already: a body that stalls must not hold up the next candidate for long.
  response.markContent();
  const text = await response.readText(errorBytesMax).catch(() => {
    response.abort();
    return "";
  });
  const { message, upstreamCode } = errorDetails(text);
  return classifyStatus({ status: response.status, message, upstreamCode, retryAfter: response.headers["retry-after"] });
}

/** Message and code of an error body in any of the known envelopes; HTML and the like has neither. */
export function errorDetails(text: string): { message: string | null; upstreamCode: string | null } {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return { message: null, upstreamCode: null };
  }
  const outer = (Array.isArray(body) ? body[0] : body) as { error?: unknown; message?: unknown; detail?: unknown } | null;
  const inner = outer?.error;
  const details = (typeof inner === "object" && inner !== null ? inner : outer ?? {}) as { message?: unknown; code?: unknown };
  const message = [details.message, inner, outer?.detail].find((value): value is string => typeof value === "string");
  return { message: message ?? null, upstreamCode: typeof details.code === "string" ? details.code : null };
}

/** Reads a whole completion and judges whether it is one that the client can use. */
export async function readWhole(response: UpstreamResponse): Promise<Whole> {
  const { status } = response;
  try {
    return judgeText({ status, text: await response.readText(wholeAnswerBytesMax) });
  } catch (error) {
    response.abort();
    if (error instanceof UpstreamFailure) return { ok: false, failure: classifyTransport(error, status) };
    // JSON that is nested deeper than the stack reaches.
    if (error instanceof RangeError) return { ok: false, failure: malformedAnswer(status, "the answer is nested too deeply") };
    throw error;
  }
}

function judgeText({ status, text }: { status: number; text: string }): Whole {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    return judgeOtherText({ status, text });
  }
  return judgeWhole({ status, text, body });
}

/** A body that is no JSON: nothing at all, an event stream that nobody asked for, or what cannot be read. */
function judgeOtherText({ status, text }: { status: number; text: string }): Whole {
  if (text.trim() === "") return { ok: false, failure: emptyAnswer(status) };
  if (!looksLikeEvents(text)) return { ok: false, failure: malformedAnswer(status, "the answer is not valid JSON") };
  const told = completionOfEvents(text);
  if (told.ok) return judgeWhole({ status, text: told.text, body: JSON.parse(told.text) });
  const { error, fault } = told.error;
  if (fault !== "reported") return { ok: false, failure: malformedAnswer(status, "the stream ended before the answer was finished") };
  return { ok: false, failure: classifyStatus({
    status: error.status ?? statusOfErrorObject(error), message: error.message, upstreamCode: error.code ?? null, retryAfter: undefined,
  }) };
}

function judgeWhole({ status, text, body }: { status: number; text: string; body: unknown }): Whole {
  if (typeof body !== "object" || body === null) return { ok: false, failure: malformedAnswer(status, "the answer is no JSON object") };
  const { error } = body as { error?: unknown };
  const answer = readWholeAnswer(text, body);
  if (error !== undefined && error !== null && answer === undefined) {
    const details = errorDetails(text);
    const said = statusOfErrorObject(typeof error === "object" ? error : {});
    return { ok: false, failure: classifyStatus({ status: said, ...details, retryAfter: undefined }) };
  }
  if (answer === undefined) return { ok: false, failure: malformedAnswer(status, "the answer has no choices") };
  return answer.hasContent ? { ok: true, answer } : { ok: false, failure: emptyAnswer(status) };
}

/** The record of an attempt that has ended. */
export const attemptRecord = (
  candidate: Candidate,
  ended: { status: number | null; outcome: AttemptRecord["outcome"]; reason: string | null; durationMs: number },
): AttemptRecord => ({
  provider: candidate.route.provider.id,
  model: candidate.model.id,
  upstreamModel: candidate.route.upstreamModel,
  status: ended.status,
  outcome: ended.outcome,
  reason: ended.reason,
  durationMs: Math.round(ended.durationMs * 100) / 100,
});

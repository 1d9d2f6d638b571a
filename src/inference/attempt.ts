import type { AttemptRecord } from "../insights/generation-record.ts";
import type { ChatCall } from "./chat-call.ts";
import { wantsStream } from "./chat-call.ts";
import { readWholeAnswer, type WholeAnswer } from "./chat-whole.ts";
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
  const text = await response.readAll(errorBytesMax).then((bytes) => Buffer.from(bytes).toString("utf8"), () => "");
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
  let text: string;
  try {
    text = Buffer.from(await response.readAll(wholeAnswerBytesMax)).toString("utf8");
  } catch (error) {
    if (error instanceof UpstreamFailure) return { ok: false, failure: classifyTransport(error) };
    throw error;
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return { ok: false, failure: text.trim() === "" ? emptyAnswer(status) : malformedAnswer(status, "the answer is not valid JSON") };
  }
  return judgeWhole({ status, text, body });
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

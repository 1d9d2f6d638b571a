import { failureOf, type FailureWithUsage } from "../attempt.ts";
import type { Execution, ServedBytes, ServedStream } from "../execution.ts";
import { exceptionFormOf } from "../adapt.ts";
import { noteKeyServed } from "../credentials/provider-credentials.ts";
import { type BytesDecoder, RelayedBytes } from "./relayed-bytes.ts";
import type { UpstreamRoute } from "../../catalog/model.ts";
import type { EventDecoder } from "../../upstream/sse-decoder.ts";
import { openEventStream } from "../../upstream/event-stream-decoder.ts";
import type { UpstreamResponse } from "../../upstream/upstream-client.ts";
import { emptyAnswer, UpstreamFailure } from "../../upstream/upstream-failure.ts";
import { type SentStream, OpenedStream } from "./opened-stream.ts";

/** Opens a stream up to its first content, or returns the failure that came in its place. */
export async function openStream(
  execution: Execution,
  sent: SentStream,
): Promise<{ ok: true; served: ServedStream } | { ok: false; failure: FailureWithUsage }> {
  const { deps, abortScope } = execution;
  const decoder = await binaryDecoder(sent.candidate.route);
  const opened = new OpenedStream(execution, sent);
  const stream = opened.relayed(decoder, sent.adapter);
  const failure = await stream.prime();
  if (failure !== undefined) return { ok: false, failure };
  opened.releaseConversation();
  noteKeyServed(deps, sent.candidate);
  abortScope.release();
  if (abortScope.clientGone) stream.cancel();
  deps.observer.streamOpened();
  return { ok: true, served: opened.served(stream) };
}

/**
 * Opens an answer of bytes up to its first ones, or returns the failure that came in their place, so
 * that the next candidate can be tried.
 */
export async function openBytes(
  execution: Execution,
  { decoder, ...sent }: SentStream & { decoder: BytesDecoder },
): Promise<{ ok: true; served: ServedBytes } | { ok: false; failure: FailureWithUsage }> {
  const { deps, abortScope } = execution;
  const { response } = sent;
  const opened = new OpenedStream(execution, sent, decoder.type);
  const { keeper } = opened;
  const bytes = new RelayedBytes({
    response,
    decoder,
    settle: async (metered, status) => {
      const ended = { status, finishReason: null, upstreamId: null, answerLosses: [] };
      const settled = await opened.settle(metered, ended);
      opened.keep();
      return settled;
    },
    ...(keeper !== undefined && { onBytes: keeper.add.bind(keeper) }),
    onFirstContent: () => opened.noteFirstContent(),
    onClosed: () => deps.observer.streamClosed(),
    onBroken: (error) => deps.observer.settlementFailed(error, execution.call.generationId),
  });
  try {
    await bytes.prime();
  } catch (error) {
    response.abort();
    return { ok: false, failure: failureOf(error, response.status) };
  }
  if (!bytes.hasContent) return { ok: false, failure: emptyAnswer(response.status) };
  noteKeyServed(deps, sent.candidate);
  abortScope.release();
  deps.observer.streamOpened();
  return { ok: true, served: { ...opened.facts(), kind: "bytes", bytes } };
}

/** Returns the decoder of Amazon's binary messages; undefined for server-sent events. */
async function binaryDecoder(route: UpstreamRoute): Promise<EventDecoder | undefined> {
  const form = exceptionFormOf(route);
  return form === undefined ? undefined : openEventStream(form);
}

/** The most bytes of a whole answer that comes in place of a stream. */
const wholeAnswerBytesMax = 64 * 1024 * 1024;

/** Converts a whole body of an upstream's dialect to the equivalent event stream. */
type EventsOfWhole = (text: string) => string;

/**
 * Returns the answer to a streamed request as an event stream. Some servers answer with a whole
 * completion or with an error as JSON (litellm#25492), which is converted to events. An answer that
 * is labelled as a stream, or begins as one, passes through unchanged.
 */
export function asEventStream(
  response: UpstreamResponse,
  eventsOf: EventsOfWhole,
): UpstreamResponse {
  if (/^text\/event-stream/i.test(response.headers["content-type"] ?? "")) return response;
  const next = eventBytes(response, eventsOf);
  return {
    status: response.status,
    headers: response.headers,
    next,
    readText: (limitBytes) => response.readText(limitBytes),
    expectMore: () => response.expectMore(),
    expectEnd: () => response.expectEnd(),
    abort: () => response.abort(),
  };
}

function eventBytes(
  response: UpstreamResponse,
  eventsOf: EventsOfWhole,
): () => Promise<Uint8Array | undefined> {
  let started = false;
  return async () => {
    if (started) return response.next();
    started = true;
    const head: Uint8Array[] = [];
    for (let chunk = await response.next(); chunk !== undefined; chunk = await response.next()) {
      head.push(chunk);
      const text = Buffer.concat(head).toString("utf8").trimStart();
      if (text === "" || text === "\uFEFF") continue;
      return /^[{[]/.test(text)
        ? Buffer.from(eventsOf(await readRest(response, head)))
        : Buffer.concat(head);
    }
    return undefined;
  };
}

async function readRest(response: UpstreamResponse, head: Uint8Array[]): Promise<string> {
  let size = 0;
  for (let chunk = await response.next(); chunk !== undefined; chunk = await response.next()) {
    size += chunk.byteLength;
    if (size > wholeAnswerBytesMax) {
      throw new UpstreamFailure(
        "response_too_large",
        `the answer is larger than ${wholeAnswerBytesMax} bytes`,
        { sent: true },
      );
    }
    head.push(chunk);
  }
  return Buffer.concat(head).toString("utf8");
}

import type { RequestContext } from "../../../access/define-endpoint.ts";
import { eventStreamHeaders, Reply } from "../../../http/reply.ts";
import { asGatewayFacts } from "../../../inference/dialects/shared/gateway-facts.ts";
import { responseRecord } from "../../../inference/dialects/openai-responses/answer-fields.ts";
import { eventFrame } from "../../../inference/dialects/openai-responses/errors.ts";
import { beginsCall } from "../../../inference/dialects/openai-responses/items/steer-input.ts";
import { encodeUsage } from "../../../inference/dialects/openai-responses/usage.ts";
import { tryOut } from "../../../inference/pipeline/begin-execution.ts";
import type { ChatCall } from "../../../inference/pipeline/inference-call.ts";
import type { RelayedStream } from "../../../inference/pipeline/stream/relayed-stream.ts";
import {
  endIn,
  eventsIn,
  type ResponseRecord,
} from "../../../inference/responses/stored-response.ts";
import { brand } from "../../../platform/kernel/brand.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { FrameSource } from "../../../platform/kernel/frame-source.ts";
import type { Dependencies } from "../../dependencies.ts";
import type { ResponseFrame } from "./response-frame.ts";

/**
 * Answers a frame with `generate: false`: the request is checked as any other, its conversation is
 * kept for a continuation, and no model is asked, so that nothing is charged. Throws `GatewayError`.
 */
export async function answerWithout(
  context: RequestContext,
  {
    call,
    dependencies: { inference, clock },
    keep,
  }: {
    call: ChatCall;
    dependencies: Pick<Dependencies, "inference" | "clock">;
    keep(record: ResponseRecord): Promise<void>;
  },
): Promise<Reply> {
  const { requestedModel } = await tryOut(inference, call);
  const createdAtSeconds = Math.floor(clock.nowMs() / 1000);
  const facts = { id: call.shownId, model: requestedModel, createdAtSeconds, output: [] };
  const requestBody = call.body;
  const begun = responseRecord(facts, { requestBody });
  const ending = { status: "completed", error: null, incomplete_details: null } as const;
  const usage = { usage: {}, estimated: false, clamped: false };
  const record = responseRecord(
    { ...facts, completedAtSeconds: createdAtSeconds, ending, usage },
    { requestBody },
  );
  const ended = { ...record, usage: { ...encodeUsage(usage), cost: 0 } };
  await keep(ended);
  const frames = [
    eventFrame("response.created", { response: begun, sequence_number: 0 }),
    eventFrame("response.completed", { response: ended, sequence_number: 1 }),
  ];
  return new Reply(onceThen(frames.join("")), {
    headers: { ...context.headers, ...eventStreamHeaders },
  });
}

/** Returns a source of one text. */
function onceThen(text: string): FrameSource {
  let left: string | undefined = text;
  return {
    next() {
      const frames = left;
      left = undefined;
      return Promise.resolve(frames);
    },
    cancel: () => undefined,
  };
}

/**
 * Returns the frames of a stream that its frame can end (`ResponseFrame.steer`): with
 * `response.incomplete`, which contains and charges what was delivered. One that has begun a call
 * goes on to its own end, since the client has to answer it.
 */
export function steerable(stream: RelayedStream, frame: ResponseFrame): FrameSource {
  let hasCall = false;
  let hasContent = false;
  let isSteered = false;
  let hasEnded = false;
  let isOver = false;
  let abandoned: ReturnType<RelayedStream["abandon"]> | undefined;
  // A read that waits for the provider is not answered once its stream was abandoned.
  let wake: ((frames: undefined) => void) | undefined;
  const abandon = (): void => {
    if (!isSteered || hasCall || !hasContent || hasEnded) return;
    abandoned ??= stream.abandon(
      new GatewayError("client_closed_request", "The response was steered."),
    );
    wake?.(undefined);
  };
  frame.steer = () => {
    isSteered = true;
    abandon();
  };
  const read = (): Promise<string | undefined> =>
    new Promise((resolve) => {
      wake = resolve;
      void stream.next().then(resolve);
    });
  return {
    async next() {
      if (isOver) return undefined;
      const frames = abandoned === undefined ? await read() : undefined;
      if (frames === undefined) {
        isOver = true;
        return abandoned && steeredEnd(await abandoned);
      }
      hasCall ||= beginsCall(frames);
      hasContent ||= frames.includes('"response.output_text.delta"');
      hasEnded ||= terminal.test(frames);
      abandon();
      return frames;
    },
    cancel: () => stream.cancel(),
  };
}

const terminal = /^event: response\.(?:completed|incomplete|failed)$/m;

/** Returns the last event of a response that was steered; undefined where it was not settled. */
function steeredEnd(left: Awaited<ReturnType<RelayedStream["abandon"]>>): string | undefined {
  const events = left && eventsIn(left.frames);
  const end = events && endIn(events);
  if (left === undefined || end === undefined) return undefined;
  const { settled, metered, metadataText } = left;
  const { chargedNano, isByok } = settled;
  const gateway = asGatewayFacts({
    chargedNano,
    isByok,
    metered,
    fallback: undefined,
    metadataText,
  });
  const number = Number(/"sequence_number":(\d+)/.exec(events?.[0]?.data ?? "")?.[1] ?? 0);
  const response = {
    ...end.record,
    status: "incomplete",
    error: null,
    incomplete_details: { reason: "steered" },
    usage: encodeUsage(metered, gateway),
    [brand.metadataKey]: gateway.metadata,
  };
  return `event: response.incomplete\ndata: ${JSON.stringify({ type: "response.incomplete", response, sequence_number: number })}\n\n`;
}

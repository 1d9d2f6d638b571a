import type { RequestContext } from "../../http/request-context.ts";
import { Reply } from "../../http/reply.ts";
import { eventStreamHeaders } from "../../http/event-stream-headers.ts";
import { execute } from "../../inference/execute.ts";
import type { ServedStream, ServedWhole } from "../../inference/execution.ts";
import type { InferenceCall } from "../../inference/inference-call.ts";
import { showsNoCost } from "../../inference/shows-no-cost.ts";
import { metadataText } from "../../inference/service-metadata.ts";
import type { FrameSource } from "../../platform/lib/frame-source.ts";
import type { Dependencies } from "../dependencies.ts";
import { addSettledHeaders, servedHeaders } from "./served-headers.ts";

/** The body of a whole answer in its client's dialect. */
export const wholeText = (
  { answer, candidate, metered, settled, fallback, attempts, timing }: ServedWhole,
  call: InferenceCall,
): string =>
  answer.render({
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

/** A whole answer with its headers; `text` is its body. */
export function wholeResponse(
  context: RequestContext,
  { served, call, text }: { served: ServedWhole; call: InferenceCall; text: string },
): Reply {
  const headers = servedHeaders(served, {
    gathered: context.headers,
    endMs: served.settled.settledMs,
  });
  headers["content-type"] = "application/json";
  if (call.wantsBalance) addSettledHeaders(headers, served.settled);
  return new Reply(text, { headers });
}

/** A stream with its headers, as they are known when it begins; `frames` are what the client gets of it. */
export function streamResponse(
  context: RequestContext,
  { served, nowMs, frames }: { served: ServedStream; nowMs: number; frames: FrameSource },
): Reply {
  const gathered = { ...eventStreamHeaders, ...context.headers };
  return new Reply(frames, { headers: servedHeaders(served, { gathered, endMs: nowMs }) });
}

/** Serves a call, whole or streamed. Throws `GatewayError`. */
export async function answerCall(
  context: RequestContext,
  call: InferenceCall,
  { inference, clock }: Dependencies,
): Promise<Reply> {
  const served = await execute(inference, call);
  if (served.kind === "whole")
    return wholeResponse(context, { served, call, text: wholeText(served, call) });
  return streamResponse(context, { served, nowMs: clock.monotonicMs(), frames: served.stream });
}

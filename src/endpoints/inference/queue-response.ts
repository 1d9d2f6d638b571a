import type { RequestContext } from "../../http/request-context.ts";
import { Reply, type Answer } from "../../http/reply.ts";
import { eventStreamHeaders } from "../../http/event-stream-headers.ts";
import { responseRecord } from "../../inference/dialects/openai-responses/response-record.ts";
import type { ChatCall } from "../../inference/inference-call.ts";
import { wantsMetadataInLastEvent } from "../../inference/interpret/metadata-place.ts";
import { tryOut } from "../../inference/prepare-execution.ts";
import {
  queuedResponse,
  type ResponseOrigin,
  type StoredRequest,
} from "../../inference/stored-responses/stored-request.ts";
import { editMembers } from "../../platform/lib/json-members.ts";
import type { Dependencies } from "../dependencies.ts";
import { withoutMetadataEvent } from "./without-metadata-event.ts";
import { withPings } from "./with-pings.ts";

/** The text that a job is run from: backends that were named by header are named in the body. */
function requestTextOf({ text, body, forcedProviders }: ChatCall): string {
  if (forcedProviders === undefined) return text;
  const provider = {
    ...(Object(body["provider"]) as Record<string, unknown>),
    order: forcedProviders,
    only: forcedProviders,
  };
  return editMembers(text, new Map([["provider", JSON.stringify(provider)]]));
}

/**
 * Queues a background response, durable before it is answered, and answers its record or its events.
 * What no provider could serve, or the caller could not bear, is refused at once. `sent` is the request as it came, which is run again
 * from its own text; `call` has the conversation that it continues.
 */
export async function queueResponse(
  context: RequestContext,
  {
    sent,
    call,
    request,
    origin,
    dependencies,
  }: {
    sent: ChatCall;
    call: ChatCall;
    request: StoredRequest;
    origin: ResponseOrigin;
    dependencies: Dependencies;
  },
): Promise<Answer> {
  const { inference, background, clock } = dependencies;
  const { requestedModel } = await tryOut(inference, call);
  const record = responseRecord(
    {
      id: origin.id,
      model: requestedModel,
      createdAtSeconds: Math.floor(clock.nowMs() / 1000),
      output: [],
    },
    { requestBody: sent.body },
  );
  const queued = queuedResponse({ request, origin, record, requestText: requestTextOf(sent) });
  await background.submit(queued);
  if (!sent.asks.stream) return context.json(queued.record);
  const followed = background.follow(origin.id, -1);
  const source = wantsMetadataInLastEvent(sent) ? withoutMetadataEvent(followed) : followed;
  const frames = withPings(source, { keepAlive: inference.keepAlive, atOnce: true });
  return new Reply(frames, { headers: { ...eventStreamHeaders, ...context.headers } });
}

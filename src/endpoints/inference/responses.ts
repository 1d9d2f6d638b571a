import { z } from "zod";
import type { LlmKeyCaller } from "../../account/keys/caller.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Answer } from "../../http/reply.ts";
import { openaiResponses } from "../../inference/dialects/openai-responses/openai-responses.ts";
import { responsesRequestSchema } from "../../inference/dialects/openai-responses/request-schema.ts";
import { execute } from "../../inference/execute.ts";
import type { ChatCall } from "../../inference/inference-call.ts";
import {
  keepResponse,
  keptStream,
  readStoredRequest,
  type ResponseOrigin,
  type StoredRequest,
} from "../../inference/stored-responses/stored-request.ts";
import type { ResponseRecord } from "../../inference/stored-responses/stored-response.ts";
import type { Dependencies } from "../dependencies.ts";
import { streamResponse, wholeResponse, wholeText } from "./answer-call.ts";
import { queueResponse } from "./queue-response.ts";
import { inferenceBodyBytesMax, readCall } from "./read-call.ts";
import { responsesReader, withConversation } from "./responses-reader.ts";
import { responsesHeaders } from "./request-headers.ts";
import { outputCapHeader } from "./served-headers.ts";
import { responseEventSchema } from "./stream-events.ts";

/** Whose response an answer is. */
const originOf = ({ shownId: id, caller }: ChatCall, createdAtMs: number): ResponseOrigin => ({
  id,
  workspaceId: caller.workspace.id,
  keyId: caller.key.id,
  createdAtMs,
});

/** Serves a call and keeps its response before the client hears of its end. */
async function answerStored(
  context: RequestContext,
  {
    call,
    request,
    dependencies,
  }: { call: ChatCall; request: StoredRequest; dependencies: Dependencies },
): Promise<Answer> {
  const { inference, clock, responses: store } = dependencies;
  const origin = originOf(call, clock.nowMs());
  // It was answered and paid for, so it is handed over even where it could not be kept.
  const keep = (record: ResponseRecord): Promise<void> =>
    keepResponse(store, { request, origin, record, endedAtMs: clock.nowMs() }).catch(
      (error: unknown) => inference.observer.responseNotKept(error, origin.id),
    );
  const served = await execute(inference, call);
  if (served.kind === "stream") {
    const frames = request.store ? keptStream(served.stream, keep) : served.stream;
    return streamResponse(context, { served, nowMs: clock.monotonicMs(), frames });
  }
  const text = wholeText(served, call);
  if (request.store) await keep(JSON.parse(text) as ResponseRecord);
  return wholeResponse(context, { served, call, text });
}

/** Responses in OpenAI's dialect, whole or streamed, on any model of the catalog. */
export const responses = defineEndpoint<Dependencies>({
  method: "POST",
  path: "/responses",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Create a response, whole or streamed.",
  description:
    "OpenAI's Responses dialect on any model, with the charge in `usage.cost`. Responses are kept unless `store` is false, " +
    "`previous_response_id` continues from one, and `background` queues one to be fetched or followed later.",
  tag: "Inference",
  rawBody: responsesRequestSchema,
  otherResponseTypes: ["text/event-stream"],
  headers: responsesHeaders,
  answerHeaders: outputCapHeader,
  streamEvents: responseEventSchema,
  response: z.looseObject({
    id: z.string(),
    object: z.literal("response"),
    created_at: z.int(),
    model: z.string(),
    status: z.string(),
    output: z.array(z.looseObject({ type: z.string() })),
    output_text: z.string(),
    usage: z
      .looseObject({
        input_tokens: z.int(),
        output_tokens: z.int(),
        total_tokens: z.int(),
        cost: z.number(),
      })
      .nullable(),
  }),
  encodeError: openaiResponses.encodeError,
  async handle(context, dependencies) {
    const sent = await readCall(context, responsesReader, dependencies);
    const workspaceId = (context.caller as LlmKeyCaller).workspace.id;
    const request = await readStoredRequest(dependencies.responses, {
      body: sent.body,
      workspaceId,
    });
    const call = request.expanded ? withConversation(sent, request.conversation) : sent;
    if (!request.background) return answerStored(context, { call, request, dependencies });
    const origin = originOf(call, dependencies.clock.nowMs());
    return queueResponse(context, { sent, call, request, origin, dependencies });
  },
});

import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../../access/define-endpoint.ts";
import { type Answer, eventStreamHeaders, Reply } from "../../../http/reply.ts";
import type { LlmKeyCaller } from "../../../identity/keys/caller.ts";
import {
  wantsMetadataInLastEvent,
  metadataPlaceHeaders,
} from "../../../inference/dialects/shared/gateway-facts.ts";
import { openaiResponses } from "../../../inference/dialects/openai-responses/index.ts";
import {
  checkResponsesRequest,
  responsesRequestSchema,
} from "../../../inference/dialects/openai-responses/request-schema.ts";
import { responseRecord } from "../../../inference/dialects/openai-responses/answer-fields.ts";
import { chatCall } from "../../../inference/pipeline/chat-call.ts";
import type { ChatCall } from "../../../inference/pipeline/inference-call.ts";
import { tryOut } from "../../../inference/pipeline/begin-execution.ts";
import type { SocketTurn } from "../../../inference/pipeline/provider-sockets/socket-turn.ts";
import {
  keepResponse,
  keptStream,
  readStoredRequest,
  queuedResponse,
  type ResponseOrigin,
  type StoredRequest,
} from "../../../inference/responses/stored-request.ts";
import {
  outputItems,
  type ResponseItem,
  type ResponseRecord,
} from "../../../inference/responses/stored-response.ts";
import { editMembers } from "../../../platform/kernel/json/json-members.ts";
import type { Dependencies } from "../../dependencies.ts";
import { withEarlyStream } from "../streams/early-stream.ts";
import { serveResponse } from "../tools/responses/serve-response.ts";
import { streamResponse, wholeResponse, outputCapHeader } from "../answer-call.ts";
import { frameOf, type ResponseFrame } from "../sockets/response-frame.ts";
import {
  inferenceBodyBytesMax,
  withCall,
  type CallReader,
  type CallServices,
} from "../read-call.ts";
import { responsesHeaders } from "../request-headers.ts";
import { answerWithout, steerable } from "../sockets/frame-answers.ts";
import { withoutMetadataEvent, withPings } from "./stored-response.ts";
import { responseEventSchema } from "../streams/stream-events.ts";

/** Returns the owner of a response. */
const originOf = ({ shownId: id, caller }: ChatCall, createdAtMs: number): ResponseOrigin => ({
  id,
  workspaceId: caller.workspace.id,
  keyId: caller.key.id,
  createdAtMs,
});

/** A call, and what its request says about storage. */
interface Storing {
  call: ChatCall;
  request: StoredRequest;
  dependencies: Pick<
    Dependencies,
    | "inference"
    | "responses"
    | "documents"
    | "upstreamServers"
    | "toolCalls"
    | "maxToolRounds"
    | "search"
    | "clock"
    | "publicUrl"
  >;
}

/**
 * Returns a function that stores a response where its request says so, and keeps it in the memory of
 * its connection where it came over one.
 */
function keeperOf(
  { call, request, dependencies }: Storing,
  frame: ResponseFrame | undefined,
): (record: ResponseRecord) => Promise<void> {
  const { inference, clock, responses: store } = dependencies;
  const origin = originOf(call, clock.nowMs());
  return async (record) => {
    // The answer was given and paid for, so it is returned even if it could not be stored.
    await keepResponse(store, { request, origin, record, endedAtMs: clock.nowMs() }).catch(
      (error: unknown) => inference.observer.responseNotKept(error, origin.id),
    );
    if (record["status"] === "failed") return;
    const output = outputItems(record);
    frame?.memory.keep(origin.id, {
      items: [...request.conversation, ...output],
      characters: call.text.length + JSON.stringify(output).length,
    });
  };
}

/** Returns what a request on a provider's socket may leave out, since that remembers it. */
function socketTurnOf(
  { shownId }: ChatCall,
  { request, frame }: { request: StoredRequest; frame: ResponseFrame },
): SocketTurn {
  const { previousResponseId, conversation, inputItems } = request;
  const remembered =
    previousResponseId === null ? undefined : frame.memory.find(previousResponseId);
  const isWhole =
    remembered !== undefined &&
    remembered.length + inputItems.length === conversation.length &&
    remembered.every((item, index) => item === conversation[index]);
  const counts = { itemCount: conversation.length, newCount: inputItems.length };
  const continues = isWhole ? { shownId: previousResponseId ?? "", ...counts } : undefined;
  return { sockets: frame.sockets, shownId, continues };
}

/** Serves a call and stores its response before the client receives its end. */
async function answerStored(
  context: RequestContext,
  { call, request, dependencies }: Storing,
): Promise<Answer> {
  const { clock } = dependencies;
  const frame = frameOf(context.request);
  const keep = keeperOf({ call, request, dependencies }, frame);
  const { conversation } = request;
  if (frame !== undefined) call.socketTurn = socketTurnOf(call, { request, frame });
  const response = await serveResponse(dependencies, { call, conversation });
  if (response.kind === "stream") {
    const { served, frames: sent } = response;
    // A stream between whose rounds tools run ends by itself, and cannot be steered.
    const isAlone = sent === served.stream;
    const steered = frame !== undefined && isAlone ? steerable(served.stream, frame) : sent;
    const frames = request.store || frame !== undefined ? keptStream(steered, keep) : steered;
    return streamResponse(context, { served, nowMs: clock.monotonicMs(), frames });
  }
  const { served, text, record } = response;
  if (request.store) await keep(record ?? (JSON.parse(text) as ResponseRecord));
  return wholeResponse(context, { served, call, text });
}

/** Answers a call that came in a frame of a socket: with a stream, or without asking a model. */
function answerFrame(
  context: RequestContext,
  { frame, ...storing }: Storing & { frame: ResponseFrame },
): Promise<Answer> {
  if (frame.generates) return answerStored(context, storing);
  return answerWithout(context, { ...storing, keep: keeperOf(storing, frame) });
}

/** Serves OpenAI's Responses dialect, whole or streamed, on any model of the catalog. */
export const responses = defineEndpoint<
  CallServices &
    Pick<
      Dependencies,
      | "responses"
      | "background"
      | "toolSecrets"
      | "documents"
      | "upstreamServers"
      | "toolCalls"
      | "maxToolRounds"
      | "search"
      | "publicUrl"
    >
>({
  method: "POST",
  path: "/responses",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Create a response, whole or streamed.",
  description:
    "OpenAI's Responses dialect on any model, with the charge in `usage.cost`. Responses are stored unless `store` is false. " +
    "`previous_response_id` continues a stored response. `background` queues the response, to fetch or follow it later.",
  tag: "Inference",
  rawBody: responsesRequestSchema,
  otherResponseTypes: ["text/event-stream"],
  headers: responsesHeaders,
  answerHeaders: outputCapHeader,
  streamEvents: responseEventSchema,
  response: () =>
    z.looseObject({
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
    return withCall(context, { reader: responsesReader, services: dependencies }, async (sent) => {
      const workspaceId = (context.caller as LlmKeyCaller).workspace.id;
      const frame = frameOf(context.request);
      const request = await readStoredRequest(dependencies.responses, {
        body: sent.body,
        workspaceId,
        counted: sent.admission?.counted,
        recall: frame && ((id) => frame.memory.find(id)),
      });
      const call = request.expanded ? withConversation(sent, request.conversation) : sent;
      const { inference } = dependencies;
      if (frame !== undefined) return answerFrame(context, { call, request, dependencies, frame });
      if (!request.background)
        return withEarlyStream(context, { call, dialect: openaiResponses, inference }, () =>
          answerStored(context, { call, request, dependencies }),
        );
      const origin = originOf(call, dependencies.clock.nowMs());
      return queueResponse(context, { sent, call, request, origin, dependencies });
    });
  },
});

/**
 * Returns the text that a job is run from. Providers that were named by header are named in the
 * body.
 */
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
 * Queues a background response, which is durable before it is answered, and returns its record or
 * its events. A request that no provider could serve, or that the caller cannot pay for, is refused
 * at once. `sent` is the request as it was received, from whose text it is run later; `call`
 * contains the conversation that it continues.
 */
async function queueResponse(
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
    dependencies: Pick<Dependencies, "inference" | "background" | "toolSecrets" | "clock">;
  },
): Promise<Answer> {
  const { inference, background, toolSecrets, clock } = dependencies;
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
  const queued = queuedResponse({
    request,
    origin,
    record,
    requestText: await toolSecrets.sealed(requestTextOf(sent), {
      body: sent.body,
      workspaceId: origin.workspaceId,
      responseId: origin.id,
    }),
    presetId: sent.presetId,
  });
  await background.submit(queued);
  if (!sent.requirements.stream) return context.json(queued.record);
  const followed = background.follow(origin.id, -1);
  const source = wantsMetadataInLastEvent(sent) ? withoutMetadataEvent(followed) : followed;
  const frames = withPings(source, { keepAlive: inference.keepAlive, atOnce: true });
  return new Reply(frames, { headers: { ...eventStreamHeaders, ...context.headers } });
}

/** The reader of requests in the Responses dialect. */
export const responsesReader: CallReader = {
  dialect: openaiResponses,
  idPrefix: "resp_",
  validate: checkResponsesRequest,
  dialectHeaders: metadataPlaceHeaders,
};

/**
 * Returns the call with the whole conversation as its input, since no provider knows what is stored
 * here.
 */
export function withConversation(call: ChatCall, conversation: readonly ResponseItem[]): ChatCall {
  const { presetId, dialectHeaders, signatures, nowSeconds } = call;
  return chatCall(call, {
    dialect: openaiResponses,
    presetId,
    dialectHeaders,
    signatures,
    nowSeconds,
    body: { ...call.body, input: conversation },
    text: editMembers(call.text, new Map([["input", JSON.stringify(conversation)]])),
  });
}

import { parseJsonObject } from "../../../http/bodies/read-body.ts";
import { chatCall } from "../../../inference/pipeline/chat-call.ts";
import type { ChatCall } from "../../../inference/pipeline/inference-call.ts";
import type { InferenceDependencies } from "../../../inference/pipeline/execution.ts";
import { encodeUsage } from "../../../inference/dialects/openai-responses/usage.ts";
import type { RelayedStream } from "../../../inference/pipeline/stream/relayed-stream.ts";
import type {
  BackgroundJob,
  BackgroundSink,
  RunBackground,
} from "../../../inference/responses/job-store.ts";
import {
  createdAt,
  endIn,
  eventsIn,
  type ResponseItem,
} from "../../../inference/responses/stored-response.ts";
import type { ResponseStore } from "../../../inference/responses/response-store.ts";
import { readStoredRequest } from "../../../inference/responses/stored-request.ts";
import { asGatewayFacts } from "../../../inference/dialects/shared/gateway-facts.ts";
import { brand } from "../../../platform/kernel/brand.ts";
import type { ToolSecrets } from "../../../mcp/gateway/tool-secrets.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { assert } from "../../../platform/kernel/assert.ts";
import { timeOrderedHex } from "../../../platform/kernel/ids.ts";
import { editMembers } from "../../../platform/kernel/json/json-members.ts";
import { conversationOf } from "../request-names.ts";
import { serveResponse, type ResponseServices } from "../tools/responses/serve-response.ts";
import { responsesReader, withConversation } from "./responses.ts";

const responseIdPrefix = "resp_";

interface Services extends ResponseServices {
  inference: InferenceDependencies;
  responses: ResponseStore;
  toolSecrets: ToolSecrets;
}

/** A job's call, with the whole conversation that it continues. */
interface JobCall {
  call: ChatCall;
  conversation: readonly ResponseItem[];
}

/** Returns the call of a job, which is always streamed, so that it can be followed. */
async function callOfJob(
  job: BackgroundJob,
  { inference, responses, toolSecrets }: Services,
  signal: AbortSignal,
): Promise<JobCall> {
  const { clock, callSignatures } = inference;
  const { workspace } = job.caller;
  const opened = await toolSecrets.opened(job.requestText, {
    body: parseJsonObject(job.requestText),
    workspaceId: workspace.id,
    responseId: job.responseId,
  });
  const text = editMembers(opened, new Map([["stream", "true"]]));
  const body = parseJsonObject(text);
  const sessionId = typeof body["session_id"] === "string" ? body["session_id"] : undefined;
  // The first run is charged under the response's own id. A later one has a charge of its own,
  // beside what an earlier process may have charged.
  const traceId =
    job.run === 1 ? job.responseId.slice(responseIdPrefix.length) : timeOrderedHex(clock.nowMs());
  const call = chatCall(
    {
      traceId,
      generationId: `gen_${traceId}`,
      shownId: job.responseId,
      caller: job.caller,
      startedMs: clock.monotonicMs(),
      signalOf: () => signal,
      wantsBalance: false,
      forcedProviders: undefined,
      tokensUsed: undefined,
      sessionId,
      conversation: conversationOf(body, { sessionId }),
      origin: undefined,
      appTitle: undefined,
      userAgent: undefined,
      traceParent: undefined,
    },
    {
      dialect: responsesReader.dialect,
      text,
      body,
      presetId: job.presetId,
      dialectHeaders: {},
      signatures: callSignatures.of(workspace.id),
      nowSeconds: () => Math.floor(clock.nowMs() / 1000),
    },
  );
  const request = await readStoredRequest(responses, { body, workspaceId: workspace.id });
  const { conversation } = request;
  return { call: request.expanded ? withConversation(call, conversation) : call, conversation };
}

/**
 * Runs background responses: with the same inference as any other request, passing its events to
 * the job.
 */
export const runBackground =
  (services: Services): RunBackground =>
  async (job, sink, signal) => {
    const served = await serveResponse(services, {
      ...(await callOfJob(job, services, signal)),
      job,
    });
    assert(served.kind === "stream", "a background response is streamed");
    const { frames: source } = served;
    signal.addEventListener("abort", () => source.cancel(), { once: true });
    if (signal.aborted) source.cancel();
    for (let frames = await source.next(); frames !== undefined; frames = await source.next()) {
      const events = createdAt(eventsIn(frames), Math.floor(job.createdAtMs / 1000));
      for (const { name, data } of events) sink.event(name, data);
      const end = endIn(events);
      if (end !== undefined) sink.record(end.status, end.record);
    }
    if (!signal.aborted) return;
    await recordCancelled(served.served.stream, { sink, createdAtMs: job.createdAtMs });
    signal.throwIfAborted();
  };

/** Stores what a cancelled response delivered, with its usage and cost. */
async function recordCancelled(
  stream: RelayedStream,
  { sink, createdAtMs }: { sink: BackgroundSink; createdAtMs: number },
): Promise<void> {
  const left = await stream.abandon(
    new GatewayError("client_closed_request", "The response was cancelled."),
  );
  const end = left && endIn(createdAt(eventsIn(left.frames), Math.floor(createdAtMs / 1000)));
  if (left === undefined || end === undefined) return;
  const {
    settled: { chargedNano, isByok },
    metered,
    metadataText,
  } = left;
  const gateway = asGatewayFacts({
    chargedNano,
    isByok,
    metered,
    fallback: undefined,
    metadataText,
  });
  sink.record("cancelled", {
    ...end.record,
    error: null,
    usage: encodeUsage(metered, gateway),
    [brand.metadataKey]: gateway.metadata,
  });
}

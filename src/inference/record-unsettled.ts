import type { GenerationDetail, GenerationRecord } from "../insights/generation-record.ts";
import type { GatewayError } from "../platform/lib/errors.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import type { Execution } from "./execution.ts";
import type { CallOrigin, InferenceCall } from "./inference-call.ts";
import { noRoute, trailOf, type CallPlan } from "./plan-call.ts";
import { routingTrail } from "./routing-trail.ts";
import { noteOrigin } from "./settle.ts";

type RecordDependencies = Pick<InferenceDependencies, "clock" | "unsettled">;

/** What tells one unsettled record from another. */
interface Unsettled
  extends Pick<GenerationRecord, "status" | "requestedModel">,
    Partial<Pick<GenerationRecord, "model" | "provider" | "upstreamModel" | "attempts">> {
  call: CallOrigin & Pick<InferenceCall, "recordedAs" | "body"> & { streamed: boolean };
  routing?: GenerationDetail["routing"];
  error?: GatewayError;
}

/** Writes the record of a request that costs nothing; its caller does not wait for it. */
function writeUnsettled(
  { clock, unsettled }: RecordDependencies,
  { call, routing, error, ...told }: Unsettled,
): void {
  const latencyMs = clock.monotonicMs() - call.startedMs;
  const detail: GenerationDetail = { usage: {}, priceVersion: null, price: null, holdNanoUsd: "0" };
  if (routing !== undefined) detail.routing = routing;
  if (error !== undefined) detail.error = { code: error.code, status: error.status };
  noteOrigin(detail, call);
  unsettled.write({
    model: told.requestedModel,
    provider: "",
    upstreamModel: "",
    attempts: [],
    ...told,
    id: call.generationId,
    createdAtMs: Math.round(clock.nowMs() - latencyMs),
    latencyMs: Math.round(latencyMs),
    workspaceId: call.caller.workspace.id,
    keyId: call.caller.key.id,
    surface: call.recordedAs,
    upstreamId: null,
    finishReason: null,
    streamed: call.streamed,
    promptTokens: 0,
    completionTokens: 0,
    costNanoUsd: 0n,
    firstTokenMs: null,
    detail,
  });
}

const streamedOf = (call: InferenceCall): Unsettled["call"] => ({
  ...call,
  streamed: call.asks.stream,
});

/** Records a request that providers were asked for and none answered. */
export function recordFailed(execution: Execution, error: GatewayError): void {
  const { deps, call, failed, requestedModel } = execution;
  const last = failed.at(-1)?.record;
  if (last === undefined && error.status < 500) return;
  writeUnsettled(deps, {
    call: streamedOf(call),
    status: "failed",
    requestedModel,
    error,
    routing: routingTrail(execution),
    attempts: failed.map(({ record }) => record),
    ...(last && { model: last.model, provider: last.provider, upstreamModel: last.upstreamModel }),
  });
}

/** Plans a call as `planCall` does; a request that no route can serve leaves a record. */
export function planOrRecord(deps: InferenceDependencies, call: InferenceCall): CallPlan {
  const trail = trailOf(deps, call);
  if (trail.candidates.length > 0) return trail;
  const error = noRoute(trail);
  writeUnsettled(deps, {
    call: streamedOf(call),
    status: "failed",
    requestedModel: trail.requestedModel,
    error,
    routing: routingTrail({ candidates: [], heldBack: [], leftOut: trail.leftOut }),
  });
  throw error;
}

/** Records a request that was answered from a cache, under the provider whose answer was kept. */
export function recordCached(
  deps: RecordDependencies,
  {
    call,
    ...answer
  }: {
    call: Omit<Unsettled["call"], "streamed">;
    requestedModel: string;
    model: string;
    provider: string;
    upstreamModel: string;
  },
): void {
  writeUnsettled(deps, { call: { ...call, streamed: false }, status: "cached", ...answer });
}

import type { RequestContext } from "../../http/request-context.ts";
import { Reply } from "../../http/reply.ts";
import { checkTrace } from "../../inference/check-trace.ts";
import { execute } from "../../inference/execute.ts";
import { recordCached } from "../../inference/record-unsettled.ts";
import { modelFor } from "../../inference/plan-call.ts";
import type { Fields } from "../../inference/surfaces/read-fields.ts";
import type { KeptAnswer } from "../../inference/surfaces/embeddings/answer-cache.ts";
import { cacheKeyOf, readCachePolicy } from "../../inference/surfaces/embeddings/cache-policy.ts";
import {
  embeddingTokens,
  type EmbeddingRequest,
} from "../../inference/surfaces/embeddings/embedding-request.ts";
import {
  assertEmbeds,
  embeddingsCall,
} from "../../inference/surfaces/embeddings/embeddings-call.ts";
import { keptAnswerOf, keptText } from "../../inference/surfaces/embeddings/kept-text.ts";
import { sortOfStrategy } from "../../inference/surfaces/embeddings/routing-strategy.ts";
import { assert } from "../../platform/lib/assert.ts";
import { lowerBrandHeader } from "../../platform/lib/brand.ts";
import type { Dependencies } from "../dependencies.ts";
import { wholeResponse, wholeText } from "./answer-call.ts";
import { callOrigin, originOf } from "./call-origin.ts";
import { rateClassOf } from "./rate-class.ts";
import { readSurfaceBody } from "./read-surface-body.ts";

const idPrefix = "embd-";
const headers = {
  cacheStatus: lowerBrandHeader("Cache-Status"),
  model: lowerBrandHeader("Model"),
  upstreamModel: lowerBrandHeader("Upstream-Model"),
  provider: lowerBrandHeader("Provider"),
};

const withStatus = (response: Reply, status: "HIT" | "MISS" | "BYPASS"): Reply => {
  response.headers[headers.cacheStatus] = status;
  return response;
};

/** A kept answer under an id of its own; nobody was asked for it, so no provider is named. */
const keptResponse = (context: RequestContext, { tail, model, upstreamModel }: KeptAnswer): Reply =>
  new Reply(keptText(idPrefix + context.traceId, tail), {
    headers: {
      ...context.headers,
      "content-type": "application/json",
      [headers.model]: model,
      [headers.upstreamModel]: upstreamModel,
    },
  });

/** Answers a request for embeddings, from the cache where it may; `read` knows its dialect. Throws `GatewayError`. */
export async function answerEmbeddings(
  context: RequestContext,
  { read, dependencies }: { read(body: Fields): EmbeddingRequest; dependencies: Dependencies },
): Promise<Reply> {
  const { counters, inference, embeddingCache: cache } = dependencies;
  const { text, body, caller } = await readSurfaceBody(context, {
    counters,
    rateClassOf: ({ model }) => rateClassOf(model),
  });
  const request = read(body);
  checkTrace(body["trace"]);
  const sort = sortOfStrategy(context.request.headers.get("x-routing-strategy"));
  const policy = readCachePolicy(context.request.headers);
  const { model } = modelFor(inference, { id: request.model, caller, assertServes: assertEmbeds });
  const serve = async () => {
    const origin = await callOrigin(context, {
      idPrefix,
      body,
      counters,
      estimateTokens: () => embeddingTokens(request.inputs),
    });
    const call = embeddingsCall(origin, { text, body, request, sort });
    const served = await execute(inference, call);
    assert(served.kind === "whole", "embeddings are not streamed");
    return {
      served,
      response: wholeResponse(context, { served, call, text: wholeText(served, call) }),
    };
  };
  if (policy === undefined) return withStatus((await serve()).response, "BYPASS");
  const key = cacheKeyOf(request, {
    workspaceId: caller.workspace.id,
    modelId: model.id,
    ownKey: policy.ownKey,
    providers: [body["provider"] ?? null, context.request.headers.get(headers.provider)],
  });
  let own: Reply | undefined;
  const answer = await cache.answer(key, {
    ttlSeconds: policy.ttlSeconds,
    make: async () => {
      const { served, response } = await serve();
      own = response;
      return keptAnswerOf(served);
    },
  });
  if (own !== undefined) return withStatus(own, "MISS");
  const call = { ...originOf(context, { idPrefix, body, caller }), recordedAs: "embeddings", body };
  const { model: servedModel, provider, upstreamModel } = answer;
  recordCached(inference, {
    call,
    requestedModel: model.id,
    model: servedModel,
    provider,
    upstreamModel,
  });
  return withStatus(keptResponse(context, answer), "HIT");
}

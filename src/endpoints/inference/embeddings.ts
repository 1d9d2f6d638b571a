import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { execute } from "../../inference/execute.ts";
import { modelFor } from "../../inference/plan-call.ts";
import type { KeptAnswer } from "../../inference/surfaces/embeddings/answer-cache.ts";
import { cacheKeyOf, readCachePolicy } from "../../inference/surfaces/embeddings/cache-policy.ts";
import { embeddingTokens, readEmbeddingRequest } from "../../inference/surfaces/embeddings/embedding-request.ts";
import { assertEmbeds, embeddingsCall } from "../../inference/surfaces/embeddings/embeddings-call.ts";
import { keptAnswerOf, keptText } from "../../inference/surfaces/embeddings/kept-text.ts";
import { sortOfStrategy } from "../../inference/surfaces/embeddings/routing-strategy.ts";
import { assert } from "../../platform/lib/assert.ts";
import { brandHeader } from "../../platform/lib/brand.ts";
import type { Dependencies } from "../dependencies.ts";
import { wholeResponse, wholeText } from "./answer-call.ts";
import { callOrigin } from "./call-origin.ts";
import { rateClassOf } from "./rate-class.ts";
import { inferenceBodyBytesMax } from "./read-call.ts";
import { readSurfaceBody } from "./read-surface-body.ts";
import { surfaceErrors, unreachable } from "./surface-errors.ts";

const idPrefix = "embd-";
const headers = {
  cacheStatus: brandHeader("Cache-Status"), model: brandHeader("Model"), upstreamModel: brandHeader("Upstream-Model"),
  provider: brandHeader("Provider"),
};

const withStatus = (response: Response, status: "HIT" | "MISS" | "BYPASS"): Response => {
  response.headers.set(headers.cacheStatus, status);
  return response;
};

/** A kept answer under an id of its own; nobody was asked for it, so no provider is named. */
const keptResponse = (context: RequestContext, { tail, model, upstreamModel }: KeptAnswer): Response =>
  new Response(keptText(idPrefix + context.traceId, tail), { headers: {
    ...context.headers, "content-type": "application/json", [headers.model]: model, [headers.upstreamModel]: upstreamModel,
  } });

async function embed(context: RequestContext, dependencies: Dependencies): Promise<Response> {
  const { counters, inference, embeddingCache: cache } = dependencies;
  const { text, body, caller } = await readSurfaceBody(context, { counters, rateClassOf: ({ model }) => rateClassOf(model) });
  const request = readEmbeddingRequest(body);
  const sort = sortOfStrategy(context.request.headers.get("x-routing-strategy"));
  const policy = readCachePolicy(context.request.headers);
  const { model } = modelFor(inference, { id: request.model, caller, assertServes: assertEmbeds });
  const serve = async () => {
    const origin = await callOrigin(context, { idPrefix, body, counters, estimateTokens: () => embeddingTokens(request.inputs) });
    const call = embeddingsCall(origin, { text, body, request, sort });
    const served = await execute(inference, call);
    assert(served.kind === "whole", "embeddings are not streamed");
    return { served, response: wholeResponse(context, { served, call, text: wholeText(served, call) }) };
  };
  if (policy === undefined) return withStatus((await serve()).response, "BYPASS");
  const key = cacheKeyOf(request, {
    workspaceId: caller.workspace.id, modelId: model.id, ownKey: policy.ownKey,
    providers: [body["provider"] ?? null, context.request.headers.get(headers.provider)],
  });
  let own: Response | undefined;
  const answer = await cache.answer(key, { ttlSeconds: policy.ttlSeconds, make: async () => {
    const { served, response } = await serve();
    own = response;
    return keptAnswerOf(served);
  } });
  return own === undefined ? withStatus(keptResponse(context, answer), "HIT") : withStatus(own, "MISS");
}

/** Vectors of texts (contract: `POST /embeddings`). */
export const embeddings = defineEndpoint<Dependencies>({
  method: "POST",
  path: "/embeddings",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Turn texts into vectors.",
  description: "OpenAI's dialect on every embedding model. Answers are kept for an hour (`gw-cache-ttl` in seconds; `gw-skip-cache: true` "
    + "passes the cache by; `gw-cache-key` stands for the input) within the workspace, and a kept answer is not billed; "
    + "`X-Service-Cache-Status` says HIT, MISS or BYPASS. `X-Routing-Strategy` is cheapest, fastest or most-available.",
  tag: "Inference",
  rawBody: z.looseObject({
    model: z.string(),
    input: z.union([z.string(), z.array(z.union([z.string(), z.int(), z.array(z.int()), z.looseObject({})])).min(1)]),
    encoding_format: z.enum(["float", "base64"]).optional(), dimensions: z.int().min(1).optional(), user: z.string().optional(),
    session_id: z.string().max(256).optional(),
  }),
  response: z.looseObject({
    id: z.string(), object: z.literal("list"), model: z.string(),
    data: z.array(z.looseObject({ object: z.literal("embedding"), index: z.int(), embedding: z.union([z.array(z.number()), z.string()]) })),
    usage: z.looseObject({
      prompt_tokens: z.int(), total_tokens: z.int(), cost: z.number().optional(),
      prompt_tokens_details: z.record(z.string(), z.int()).optional(),
    }),
  }),
  encodeError: surfaceErrors({
    names: { ...unreachable, bad_request: "invalid_request_error" },
    types: { insufficient_balance: "insufficient_credits" },
  }),
  handle: embed,
});

import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { countsTokens } from "../../access/count-request.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { assertServed } from "../../billing/customers/customer-book.ts";
import { lazily } from "../../http/endpoint.ts";
import { Reply } from "../../http/reply.ts";
import { checkTrace, modelFor } from "../../inference/pipeline/plan/plan-call.ts";
import { execute } from "../../inference/pipeline/execute.ts";
import { recordCached } from "../../inference/pipeline/settlement/records.ts";
import {
  cacheKeyOf,
  readCachePolicy,
  keptAnswerOf,
  keptText,
} from "../../inference/surfaces/embeddings/answer-cache.ts";
import {
  readCohereEmbedRequest,
  readEmbeddingRequest,
  embeddingTokens,
  type EmbeddingRequest,
  sortOfStrategy,
} from "../../inference/surfaces/embeddings/embedding-request.ts";
import {
  assertEmbeds,
  embeddingsCall,
} from "../../inference/surfaces/embeddings/embeddings-call.ts";
import type { Fields } from "../../inference/surfaces/read-fields.ts";
import { assert } from "../../platform/kernel/assert.ts";
import { brandHeader, lowerBrandHeader } from "../../platform/kernel/brand.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  wholeResponse,
  wholeText,
  cohereErrors,
  surfaceErrors,
  unreachable,
} from "./answer-call.ts";
import {
  inferenceBodyBytesMax,
  originOf,
  rateClassOf,
  readSurfaceBody,
  whileCounted,
  whileTokensCounted,
  type Counted,
  type SurfaceBody,
} from "./read-call.ts";
import { customerOf } from "./request-names.ts";
import type { KeptAnswer } from "../../inference/surfaces/embeddings/memory-answer-store.ts";

const names = {
  names: { ...unreachable, bad_request: "invalid_request_error" },
  types: { insufficient_balance: "insufficient_credits" },
} as const;

const headers = z.lazy(() =>
  z.object({
    "gw-cache-ttl": z
      .string()
      .regex(/^\d+$/)
      .optional()
      .describe("Seconds for which the answer is cached. Default 3600; 0 disables storage."),
    "gw-skip-cache": z
      .enum(["true", "false"])
      .optional()
      .describe("`true` skips the cache for reading and writing."),
    "gw-cache-key": z
      .string()
      .max(1_024)
      .optional()
      .describe("Replaces the input and the other fields in the cache key."),
    "X-Routing-Strategy": z.enum(["cheapest", "fastest", "most-available"]).optional(),
    "x-session-id": z
      .string()
      .max(256)
      .optional()
      .describe(
        "Id of a session. Its requests are sent to the same provider; `session_id` in the body takes precedence.",
      ),
  }),
);

const shared = {
  method: "POST",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  tag: "Inference",
  headers,
  answerHeaders: { [brandHeader("Cache-Status")]: "HIT, MISS or BYPASS." },
} as const;

const usage = lazily(() =>
  z.looseObject({
    prompt_tokens: z.int(),
    total_tokens: z.int(),
    cost: z.number().optional(),
    prompt_tokens_details: z.record(z.string(), z.int()).optional(),
  }),
);

/** Returns vectors of texts (contract: `POST /embeddings`). */
export const embeddings = defineEndpoint<
  Pick<Dependencies, "inference" | "embeddingCache" | "counters">
>({
  ...shared,
  path: "/embeddings",
  base: "api",
  summary: "Create embeddings.",
  description:
    "OpenAI's dialect on every embedding model. Answers are cached within the workspace for an hour; a cached answer is not billed. " +
    "`gw-cache-ttl` sets the seconds, `gw-skip-cache: true` skips the cache, and `gw-cache-key` replaces the input in the cache " +
    "key. `X-Service-Cache-Status` is HIT, MISS or BYPASS. `X-Routing-Strategy` is cheapest, fastest or most-available.",
  rawBody: z.lazy(() =>
    z.looseObject({
      model: z.string(),
      input: z.union([
        z.string(),
        z.array(z.union([z.string(), z.int(), z.array(z.int()), z.looseObject({})])).min(1),
      ]),
      encoding_format: z.enum(["float", "base64"]).optional(),
      dimensions: z.int().min(1).optional(),
      user: z.string().optional(),
      session_id: z.string().max(256).optional(),
    }),
  ),
  response: () =>
    z.looseObject({
      id: z.string(),
      object: z.literal("list"),
      model: z.string(),
      data: z.array(
        z.looseObject({
          object: z.literal("embedding"),
          index: z.int(),
          embedding: z.union([z.array(z.number()), z.string()]),
        }),
      ),
      usage: usage(),
    }),
  encodeError: surfaceErrors(names),
  handle: (context, dependencies) =>
    answerEmbeddings(context, { read: readEmbeddingRequest, dependencies }),
});

const vectors = lazily(() =>
  z.object({
    float: z.array(z.array(z.number())).optional(),
    base64: z.array(z.string()).optional(),
  }),
);

/** The same at the path of Cohere's own clients. Source: https://docs.cohere.com/reference/embed */
export const cohereEmbedPath = defineEndpoint<
  Pick<Dependencies, "inference" | "embeddingCache" | "counters">
>({
  ...shared,
  path: "/v2/embed",
  base: "root",
  summary: "Create embeddings of texts and images, for Cohere's clients.",
  description:
    "Cohere's dialect and path, for every embedding model, whichever dialect its provider uses. Otherwise like `POST /embeddings`. " +
    "Send one of `texts`, `images` and `inputs`; `embedding_types` are float and base64. `X-Service-Translation-Loss` names fields " +
    "that the provider does not support.",
  rawBody: z.lazy(() =>
    z.looseObject({
      model: z.string(),
      texts: z.array(z.string()).min(1).optional(),
      images: z.array(z.string()).min(1).optional(),
      inputs: z
        .array(z.looseObject({ content: z.array(z.looseObject({ type: z.string() })) }))
        .min(1)
        .optional(),
      input_type: z.string().optional(),
      embedding_types: z
        .array(z.enum(["float", "base64"]))
        .min(1)
        .optional(),
      output_dimension: z.int().min(1).optional(),
      truncate: z.string().optional(),
      max_tokens: z.int().optional(),
    }),
  ),
  response: () =>
    z.looseObject({
      id: z.string(),
      response_type: z.literal("embeddings_by_type"),
      embeddings: vectors(),
      texts: z.array(z.string()),
      meta: z.looseObject({ billed_units: z.looseObject({ input_tokens: z.int() }) }),
      usage: usage(),
    }),
  encodeError: cohereErrors(names),
  handle: (context, dependencies) =>
    answerEmbeddings(context, { read: readCohereEmbedRequest, dependencies }),
});

const idPrefix = "embd-";
const answerHeaders = {
  cacheStatus: lowerBrandHeader("Cache-Status"),
  model: lowerBrandHeader("Model"),
  upstreamModel: lowerBrandHeader("Upstream-Model"),
  provider: lowerBrandHeader("Provider"),
};

const withStatus = (response: Reply, status: "HIT" | "MISS" | "BYPASS"): Reply => {
  response.headers[answerHeaders.cacheStatus] = status;
  return response;
};

/** Returns a kept answer under an id of its own. It names no provider, since none was called. */
const keptResponse = (context: RequestContext, { tail, model, upstreamModel }: KeptAnswer): Reply =>
  new Reply(keptText(idPrefix + context.traceId, tail), {
    headers: {
      ...context.headers,
      "content-type": "application/json",
      [answerHeaders.model]: model,
      [answerHeaders.upstreamModel]: upstreamModel,
    },
  });

/**
 * Answers a request for embeddings, from the cache where possible; `read` reads its dialect. Throws
 * `GatewayError`.
 */
async function answerEmbeddings(
  context: RequestContext,
  {
    read,
    dependencies,
  }: {
    read(body: Fields): EmbeddingRequest;
    dependencies: Pick<Dependencies, "inference" | "embeddingCache" | "counters">;
  },
): Promise<Reply> {
  const { counters } = dependencies;
  const sent = await readSurfaceBody(context);
  // A cached answer uses no tokens, so these are counted later, and the hold waits for them.
  const countsLater = countsTokens(context.caller as LlmKeyCaller);
  return whileCounted(
    context,
    {
      counters,
      rateClass: rateClassOf(sent.body["model"]),
      ...(!countsLater && { ticket: context.traceId }),
    },
    (counted) => answerCounted(context, { ...sent, read, counted, dependencies }),
  );
}

async function answerCounted(
  context: RequestContext,
  {
    text,
    body,
    read,
    counted,
    dependencies,
  }: SurfaceBody & {
    read(body: Fields): EmbeddingRequest;
    counted: Counted;
    dependencies: Pick<Dependencies, "inference" | "embeddingCache" | "counters">;
  },
): Promise<Reply> {
  const { counters, inference, embeddingCache: cache } = dependencies;
  const caller = context.caller as LlmKeyCaller;
  const request = read(body);
  checkTrace(body["trace"]);
  const sort = sortOfStrategy(context.request.headers.get("x-routing-strategy"));
  const policy = readCachePolicy(context.request.headers);
  const { model } = modelFor(inference, { id: request.model, caller, assertServes: assertEmbeds });
  const serve = () =>
    whileTokensCounted(
      context,
      { counters, counted, estimateTokens: () => embeddingTokens(request.inputs) },
      async (countedNow) => {
        const origin = originOf(context, { idPrefix, body, caller, counted: countedNow });
        const call = embeddingsCall(origin, { text, body, request, sort });
        const served = await execute(inference, call);
        assert(served.kind === "whole", "embeddings are not streamed");
        return {
          served,
          response: wholeResponse(context, { served, call, text: wholeText(served, call) }),
        };
      },
    );
  if (policy === undefined) return withStatus((await serve()).response, "BYPASS");
  assertServed(inference.ledger, { caller, customer: customerOf(body, context.request.headers) });
  const key = cacheKeyOf(request, {
    workspaceId: caller.workspace.id,
    modelId: model.id,
    ownKey: policy.ownKey,
    providers: [body["provider"] ?? null, context.request.headers.get(answerHeaders.provider)],
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
  await counted.admission?.counted;
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

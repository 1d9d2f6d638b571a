import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import { openaiChat } from "../../inference/dialects/openai-chat/openai-chat.ts";
import { chatRequestSchema } from "../../inference/dialects/openai-chat/request-schema.ts";
import { holdCeiling } from "../../inference/hold-ceiling.ts";
import type { InferenceCall } from "../../inference/inference-call.ts";
import { noRoute, trailOf, type PlanTrail } from "../../inference/plan-call.ts";
import { estimatedCostNano, type Candidate } from "../../inference/routing/candidate.ts";
import { usdFromNano } from "../../platform/lib/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { chatReader } from "./chat-completions.ts";
import { inferenceBodyBytesMax, readCall } from "./read-call.ts";

/** Output tokens that the estimate of a cost assumes where the request names no cap, as holds do. */
const outputTokensDefault = 4_096;

const candidateSchema = z.looseObject({
  position: z.int(), provider: z.string(), model: z.string(), upstream_model: z.string(), reason: z.string(),
  credential_source: z.enum(["platform", "own_byok", "pool"]), estimated_cost_usd: z.number().nullable(),
});

function candidateObject(candidate: Candidate, { position, inputTokens, outputTokens }: {
  position: number; inputTokens: number; outputTokens: number;
}): Record<string, unknown> {
  const { model, route, router, reason, credential } = candidate;
  const costNano = estimatedCostNano(candidate, { inputTokens, outputTokens });
  return {
    position,
    provider: route.provider.id,
    model: model.id,
    upstream_model: route.upstreamModel,
    ...(router === undefined ? {} : { router: router.id }),
    reason,
    credential_source: credential?.source ?? "platform",
    estimated_cost_usd: costNano === undefined ? null : usdFromNano(costNano),
  };
}

function explanation(trail: PlanTrail, { asks }: InferenceCall): Record<string, unknown> {
  const { candidates, leftOut, inputTokens } = trail;
  const outputTokens = (asks.maxOutputTokens ?? outputTokensDefault) * asks.choices;
  const refusal = candidates.length === 0 ? noRoute(trail) : undefined;
  return {
    object: "routing.explanation",
    requested_model: trail.requestedModel,
    candidates: candidates.map((candidate, position) => candidateObject(candidate, { position, inputTokens, outputTokens })),
    left_out: leftOut.map(({ provider, model, rule }) => ({ provider, model, rule })),
    session_moved: trail.moved,
    estimate: { input_tokens: inputTokens, output_tokens_max: outputTokens },
    hold_usd: usdFromNano(holdCeiling(candidates, { inputTokens, ...asks })),
    error: refusal === undefined ? null : { code: refusal.code, message: refusal.message },
  };
}

/** Who would serve a request, in which order and why, without sending it. */
export const explainRouting = defineEndpoint<Dependencies>({
  method: "POST",
  path: "/routing/explain",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Explain how a chat request would be routed.",
  description: "Takes the body of POST /chat/completions and sends nothing: the candidates in the order in which they would be "
    + "tried, each with its reason and what it may cost, who was left out by which rule, and what would be held.",
  tag: "Inference",
  rawBody: chatRequestSchema,
  response: z.looseObject({
    object: z.literal("routing.explanation"), requested_model: z.string(), candidates: z.array(candidateSchema),
    left_out: z.array(z.object({ provider: z.string(), model: z.string(), rule: z.string() })), hold_usd: z.number(),
  }),
  encodeError: openaiChat.encodeError,
  async handle(context, dependencies) {
    const call = await readCall(context, chatReader, dependencies);
    return context.json(explanation(trailOf(dependencies.inference, call), call));
  },
});

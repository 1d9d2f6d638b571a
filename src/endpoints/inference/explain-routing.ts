import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { routedCaller } from "../../identity/keys/caller.ts";
import { openaiChat } from "../../inference/dialects/openai-chat/index.ts";
import { chatRequestSchema } from "../../inference/dialects/openai-chat/request-schema.ts";
import { holdCeiling } from "../../inference/pipeline/hold/hold-ceiling.ts";
import type { Execution } from "../../inference/pipeline/execution.ts";
import { tryOut } from "../../inference/pipeline/begin-execution.ts";
import type { InferenceCall } from "../../inference/pipeline/inference-call.ts";
import { outputCapFor } from "../../inference/pipeline/hold/take-hold.ts";
import { noRoute, trailOf, type PlanTrail } from "../../inference/pipeline/plan/plan-call.ts";
import { estimatedCostNano, type Candidate } from "../../inference/routing/candidate.ts";
import type { MediaUse } from "../../billing/ledger/price.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { chatReader } from "./chat-completions.ts";
import { explainedCall, mediaSurfaceOf } from "../media/explained-call.ts";
import {
  inferenceBodyBytesMax,
  readCall,
  readSurfaceBody,
  type CallServices,
} from "./read-call.ts";

/** Output tokens that a cost estimate assumes where the request names no cap, as holds do. */
const outputTokensDefault = 4_096;

const candidateSchema = lazily(() =>
  z.object({
    position: z.int(),
    provider: z.string(),
    model: z.string(),
    upstream_model: z.string(),
    router: z.string().optional().describe("The router that chose the model, if one did."),
    reason: z.string(),
    credential_source: z.enum(["platform", "own_byok", "pool"]),
    estimated_cost_usd: z.number().nullable(),
    output_cap: z.int().nullable(),
  }),
);

/** The outcome of taking the request's hold now: the execution, or the refusal. */
type HoldOutcome = Execution | GatewayError | undefined;

/**
 * Returns the lower cap that a candidate would be given; null where none would be lowered, or
 * nothing can be paid.
 */
function outputCapOf(holdOutcome: HoldOutcome, candidate: Candidate): number | null {
  if (holdOutcome === undefined || holdOutcome instanceof GatewayError) return null;
  try {
    return outputCapFor(holdOutcome, candidate) ?? null;
  } catch (error) {
    if (error instanceof GatewayError) return null;
    throw error;
  }
}

function candidateObject(
  candidate: Candidate,
  {
    position,
    inputTokens,
    outputTokens,
    mediaAt,
    holdOutcome,
  }: {
    position: number;
    inputTokens: number;
    outputTokens: number;
    mediaAt: InferenceCall["requirements"]["mediaAt"];
    holdOutcome: HoldOutcome;
  },
): Record<string, unknown> {
  const { model, route, router, reason, credential } = candidate;
  const costNano = estimatedCostNano(candidate, { inputTokens, outputTokens, mediaAt });
  return {
    position,
    provider: route.provider.id,
    model: model.id,
    upstream_model: route.upstreamModel,
    ...(router === undefined ? {} : { router: router.id }),
    reason,
    credential_source: credential?.source ?? "platform",
    estimated_cost_usd: costNano === undefined ? null : usdFromNano(costNano),
    output_cap: outputCapOf(holdOutcome, candidate),
  };
}

/**
 * Takes the hold of a request and frees it at once, since only the ledger knows how much is free.
 */
async function holdOutcomeOf(
  { inference }: Pick<Dependencies, "inference">,
  call: InferenceCall,
): Promise<HoldOutcome> {
  try {
    return await tryOut(inference, call);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

function explanation(
  trail: PlanTrail,
  { requirements, requestedAs }: InferenceCall,
  holdOutcome: HoldOutcome,
): Record<string, unknown> {
  const { candidates, leftOut, inputTokens } = trail;
  const outputTokens = (requirements.maxOutputTokens ?? outputTokensDefault) * requirements.choices;
  const refusal =
    candidates.length === 0
      ? noRoute(trail)
      : holdOutcome instanceof GatewayError
        ? holdOutcome
        : undefined;
  const { mediaAt } = requirements;
  const [first] = candidates;
  const media: MediaUse | undefined = first && mediaAt?.(first.route);
  const worstNano = holdCeiling(candidates, { inputTokens, ...requirements });
  const heldNano =
    holdOutcome === undefined || holdOutcome instanceof GatewayError
      ? 0n
      : (holdOutcome.allowance?.heldNano ?? worstNano);
  return {
    object: "routing.explanation",
    requested_model: requestedAs ?? trail.requestedModel,
    candidates: candidates.map((candidate, position) =>
      candidateObject(candidate, { position, inputTokens, outputTokens, mediaAt, holdOutcome }),
    ),
    left_out: leftOut.map(({ provider, model, rule }) => ({ provider, model, rule })),
    session_moved: trail.moved,
    estimate: {
      input_tokens: inputTokens,
      output_tokens_max: outputTokens,
      ...(media !== undefined && { parts: media.usage }),
    },
    worst_case_usd: usdFromNano(worstNano),
    hold_usd: usdFromNano(heldNano),
    error:
      refusal === undefined
        ? null
        : { code: refusal.code, message: refusal.message, metadata: refusal.metadata },
  };
}

/** The members of requests for pictures, speech and transcripts that their price and route depend on. */
const explainedMedia = () => ({
  model: z.string().min(1).describe("Catalog id of a model of pictures, speech or transcripts."),
  prompt: z.string().optional().describe("What a picture shows."),
  n: z.int().min(1).max(10).optional(),
  size: z.string().optional().describe("auto, pixels such as 1024x1024, or a tier such as 2K."),
  quality: z.string().optional(),
  input: z.string().optional().describe("The text that is spoken."),
  voice: z.union([z.string(), z.looseObject({ id: z.string() })]).optional(),
  file_id: z.string().optional().describe("A file of the workspace that is transcribed."),
  messages: z.never().optional().describe("A body with messages is one of chat."),
});

/** Returns which candidates would serve a request, in which order and why, without sending it. */
export const explainRouting = defineEndpoint<CallServices & Pick<Dependencies, "audioBytesMax">>({
  method: "POST",
  path: "/routing/explain",
  base: "api",
  access: { llmKey: true, managementScope: "inference", session: true },
  anyOrigin: true,
  unaudited: true,
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Explain the routing of a request.",
  description:
    "Takes the body of POST /chat/completions, or the JSON body of a request for pictures, speech or a transcript, and sends no " +
    "request to a provider. Returns the candidates in the order in which they " +
    "would be tried, each with its reason, its possible cost and, if the caller can pay it alone, its output cap; the routes that " +
    "were excluded, each with the rule; the maximum cost of the request; and the amount that would be held now. For management keys " +
    "and signed-in people, the answer applies to their workspace, as for a key without limits of its own.",
  tag: "Inference",
  rawBody: z.union([
    chatRequestSchema,
    z
      .lazy(() => z.looseObject(explainedMedia()))
      .meta({ title: "Pictures, speech or a transcript" }),
  ]),
  response: () =>
    z.object({
      object: z.literal("routing.explanation"),
      requested_model: z
        .string()
        .describe("Requested catalog id, router or name of an alias, as records have it."),
      candidates: z.array(candidateSchema()),
      left_out: z.array(z.object({ provider: z.string(), model: z.string(), rule: z.string() })),
      session_moved: z
        .boolean()
        .describe("Whether the session would leave the provider that served it last."),
      estimate: z
        .object({
          input_tokens: z.int(),
          output_tokens_max: z.int().describe("Output tokens that the maximum cost assumes."),
          parts: z
            .record(z.string(), z.int())
            .optional()
            .describe("What pictures and sound use at most, by part of the usage."),
        })
        .describe("What the request is expected to use."),
      worst_case_usd: z.number(),
      hold_usd: z.number(),
      error: z
        .object({
          code: z.string(),
          message: z.string(),
          metadata: z.record(z.string(), z.unknown()),
        })
        .nullable()
        .describe("The error that the request would be refused with now; null if none."),
    }),
  encodeError: openaiChat.encodeError,
  async handle(context, dependencies) {
    if (context.caller.kind !== "anonymous") context.caller = routedCaller(context.caller);
    const received = await readSurfaceBody(context);
    const { body } = received;
    const surface = mediaSurfaceOf(context, body, dependencies);
    const call: InferenceCall =
      surface === undefined
        ? await readCall(context, { ...chatReader, received }, dependencies)
        : await explainedCall(context, { surface, body, services: dependencies });
    const trail = trailOf(dependencies.inference, call);
    return context.json(
      explanation(
        trail,
        call,
        trail.candidates.length === 0 ? undefined : await holdOutcomeOf(dependencies, call),
      ),
    );
  },
});

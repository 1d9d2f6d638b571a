import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { categories } from "../../inference/surfaces/moderations/guard-format.ts";
import { moderationModel } from "../../inference/surfaces/moderations/guard-formats.ts";
import {
  moderationsCall,
  moderationTokens,
  readModerationRequest,
} from "../../inference/surfaces/moderations/moderations-call.ts";
import type { Dependencies } from "../dependencies.ts";
import { answerCall, surfaceErrors, unreachable } from "./answer-call.ts";
import { rateClassOf, inferenceBodyBytesMax, withSurfaceCall } from "./read-call.ts";

const byCategory = <Value extends z.ZodType>(value: Value) =>
  z.object(
    Object.fromEntries(categories.map((category) => [category, value])) as Record<string, Value>,
  );

/** Returns whether texts are harmful, and in which way (contract: `POST /moderations`). */
export const moderations = defineEndpoint<Pick<Dependencies, "inference" | "counters" | "clock">>({
  method: "POST",
  path: "/moderations",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Classify texts as harmful or not in 13 categories.",
  description:
    "Up to 32 texts of up to 32,000 characters each. A guard model is chosen if no model or one of OpenAI's ids is sent. " +
    "`guard_categories` has the guard model's own labels.",
  tag: "Inference",
  rawBody: z.lazy(() =>
    z.looseObject({
      input: z.union([
        z.string(),
        z
          .array(
            z.union([z.string(), z.looseObject({ type: z.literal("text"), text: z.string() })]),
          )
          .min(1)
          .max(32),
      ]),
      model: z.string().optional(),
      session_id: z.string().max(256).optional(),
    }),
  ),
  response: () =>
    z.looseObject({
      id: z.string(),
      model: z.string(),
      results: z.array(
        z.looseObject({
          flagged: z.boolean(),
          categories: byCategory(z.boolean()),
          category_scores: byCategory(z.number()),
          category_applied_input_types: byCategory(z.array(z.literal("text"))),
          guard_categories: z.array(z.string()),
        }),
      ),
      usage: z.looseObject({
        prompt_tokens: z.int(),
        completion_tokens: z.int(),
        total_tokens: z.int(),
        cost: z.number(),
      }),
    }),
  encodeError: surfaceErrors({ names: { ...unreachable, bad_request: "invalid_request" } }),
  async handle(context, dependencies) {
    const { counters, inference } = dependencies;
    const caller = context.caller as LlmKeyCaller;
    return withSurfaceCall(
      context,
      {
        counters,
        idPrefix: "modr-",
        rateClassOf: (body) => rateClassOf(body["model"]),
        read: ({ body }) => {
          const request = readModerationRequest(body);
          return { request, model: moderationModel(inference, { written: request.model, caller }) };
        },
        estimateTokens: ({ request, model }) => moderationTokens(request, model),
      },
      ({ origin, text, body, request }) =>
        answerCall(context, moderationsCall(origin, { text, body, ...request }), dependencies),
    );
  },
});

import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { decisionsCall } from "../../inference/surfaces/decisions/decisions-call.ts";
import { readDecisionRequest } from "../../inference/surfaces/decisions/decision-request.ts";
import { estimateInputTokens } from "../../inference/dialects/shared/requirements.ts";
import type { Dependencies } from "../dependencies.ts";
import { answerCall, surfaceErrors, unreachable } from "./answer-call.ts";
import { inferenceBodyBytesMax, withSurfaceCall } from "./read-call.ts";

const guidance = z.union([z.string(), z.looseObject({}), z.array(z.unknown())]);

const question = z.lazy(() =>
  z.discriminatedUnion("type", [
    z.looseObject({
      type: z.literal("noul"),
      instructions: guidance,
      criteria: z.object({ true: guidance, false: guidance }).partial().optional(),
    }),
    z.looseObject({
      type: z.literal("choice"),
      instructions: guidance,
      criteria: z.record(z.string(), guidance.nullable()),
    }),
    z.looseObject({
      type: z.literal("score"),
      instructions: guidance,
      criteria: z.array(guidance).min(2).max(10),
    }),
  ]),
);

const endpointAt = (path: string) =>
  defineEndpoint<Pick<Dependencies, "inference" | "counters" | "clock">>({
    method: "POST",
    path,
    base: "api",
    access: { llmKey: true },
    counting: "by-handler",
    bodyBytesMax: inferenceBodyBytesMax,
    summary: "Answer typed questions about a state with probabilities.",
    description:
      "Questions are `noul` (yes or no), `choice` (one of several options) or `score` (a level on a scale of 2 to 10 levels, " +
      "counted from 0). Free on every plan. Limited to 60 requests per minute and key, counted separately.",
    tag: "Inference",
    rawBody: z.lazy(() =>
      z.looseObject({
        state: guidance,
        model: z.string(),
        questions: z.record(z.string(), question),
      }),
    ),
    response: () =>
      z.looseObject({
        model: z.string(),
        answers: z.record(z.string(), z.looseObject({ type: z.enum(["noul", "choice", "score"]) })),
        usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int(), cost: z.literal(0) }),
      }),
    encodeError: surfaceErrors({ names: unreachable }),
    handle: (context, dependencies) =>
      withSurfaceCall(
        context,
        {
          counters: dependencies.counters,
          idPrefix: "dec-",
          rateClassOf: () => "decision",
          read: ({ text, body }) => ({ text, body, request: readDecisionRequest(body) }),
          estimateTokens: ({ text, body }) => estimateInputTokens(text, body),
        },
        ({ origin, request }) => answerCall(context, decisionsCall(origin, request), dependencies),
      ),
  });

/** Answers typed questions with probabilities (contract: `POST /decisions`). */
export const decisions = endpointAt("/decisions");

/** The same under its other name. */
export const systemOne = endpointAt("/systemone");

import { z } from "zod";
import { defineEndpoint, type Endpoint } from "../../access/define-endpoint.ts";
import {
  expectedTokens,
  rerankCall,
  readRerankRequest,
} from "../../inference/surfaces/rerank/rerank-call.ts";
import { isOpenRouterSdk } from "../../http/error-envelope.ts";
import type { Dependencies } from "../dependencies.ts";
import { answerCall, cohereErrors, surfaceErrors, unreachable } from "./answer-call.ts";
import { rateClassOf, inferenceBodyBytesMax, withSurfaceCall } from "./read-call.ts";

type Place = Pick<Endpoint<Dependencies>, "path" | "base" | "summary" | "encodeError">;

const names = { names: { ...unreachable, bad_request: "invalid_request" } } as const;

const endpointAt = (place: Place) =>
  defineEndpoint<Pick<Dependencies, "inference" | "counters" | "clock">>({
    method: "POST",
    ...place,
    access: { llmKey: true },
    counting: "by-handler",
    bodyBytesMax: inferenceBodyBytesMax,
    description:
      "Accepts up to 1,000 documents. Billed by the tokens of the query and of all documents, at four characters per token. A " +
      "search unit that the provider reports is billed as at least 1,000 tokens.",
    tag: "Inference",
    rawBody: z.lazy(() =>
      z.looseObject({
        model: z.string(),
        query: z.string(),
        documents: z
          .array(z.union([z.string(), z.looseObject({ text: z.string() })]))
          .min(1)
          .max(1_000),
        top_n: z.int().min(1).optional(),
        return_documents: z.boolean().optional(),
        max_tokens_per_doc: z.int().min(1).optional(),
        session_id: z.string().max(256).optional(),
      }),
    ),
    response: () =>
      z.looseObject({
        id: z.string(),
        model: z.string(),
        results: z.array(
          z.looseObject({
            index: z.int(),
            relevance_score: z.number().min(0).max(1),
            document: z.looseObject({ text: z.string() }).optional(),
          }),
        ),
        usage: z.looseObject({
          prompt_tokens: z.int(),
          total_tokens: z.int(),
          search_units: z.number().optional(),
          cost: z.number(),
        }),
      }),
    handle: (context, dependencies) =>
      withSurfaceCall(
        context,
        {
          counters: dependencies.counters,
          idPrefix: "rerank-",
          rateClassOf: ({ model }) => rateClassOf(model),
          // OpenRouter's SDKs need the documents in the answer, and cannot ask for them.
          read: ({ body }) =>
            readRerankRequest(
              isOpenRouterSdk(context.request.headers) ? { return_documents: true, ...body } : body,
            ),
          estimateTokens: expectedTokens,
        },
        ({ origin, ...call }) => answerCall(context, rerankCall(origin, call), dependencies),
      ),
  });

/** Orders documents by relevance to a query (contract: `POST /rerank`). */
export const rerank = endpointAt({
  path: "/rerank",
  base: "api",
  summary: "Rank documents by relevance to a query.",
  encodeError: surfaceErrors(names),
});

/**
 * The same at the path of Cohere's own clients. Source: https://docs.cohere.com/reference/rerank
 */
export const cohereRerankPath = endpointAt({
  path: "/v2/rerank",
  base: "root",
  summary: "Rank documents by relevance to a query, for Cohere's clients.",
  encodeError: cohereErrors(names),
});

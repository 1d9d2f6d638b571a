import type { RequestContext } from "../../access/define-endpoint.ts";
import type { Reply } from "../../http/reply.ts";
import { asNumber, asObject } from "../../inference/dialects/shared/wire-fields.ts";
import { execute } from "../../inference/pipeline/execute.ts";
import {
  embeddingTokens,
  type EmbeddingRequest,
} from "../../inference/surfaces/embeddings/embedding-request.ts";
import { embeddingsCall } from "../../inference/surfaces/embeddings/embeddings-call.ts";
import type { Fields } from "../../inference/surfaces/read-fields.ts";
import { assert } from "../../platform/kernel/assert.ts";
import type { Dependencies } from "../dependencies.ts";
import { wholeResponse, wholeText } from "./answer-call.ts";
import { rateClassOf, withSurfaceCall, type SurfaceBody } from "./read-call.ts";

/** The vectors of a request, in the order of its inputs. */
interface MadeVectors {
  vectors: readonly (readonly number[])[];
  tokens: number;
  /** In USD; undefined where the request is free. */
  cost: number | undefined;
}

/** The form in which clients of a vendor ask for vectors and read them. */
interface VectorForm {
  /** Returns the model of a body, or of the path. */
  modelOf(body: Fields): unknown;
  requestOf(sent: SurfaceBody): EmbeddingRequest;
  render(made: MadeVectors, body: Fields): object;
}

const asNumbers = { formats: ["float"], fields: {}, texts: undefined } as const;

/**
 * Answers a request for vectors in the form of another vendor. They are made as for Cohere's
 * clients, who also name the purpose of a vector. `received` is the body, where it was read before.
 */
export function answerVectors(
  context: RequestContext,
  { counters, inference }: Pick<Dependencies, "inference" | "counters">,
  { modelOf, requestOf, render, received }: VectorForm & { received?: SurfaceBody },
): Promise<Reply> {
  return withSurfaceCall(
    context,
    {
      counters,
      idPrefix: "",
      received,
      rateClassOf: (body) => rateClassOf(modelOf(body)),
      read: (sent) => ({ cohere: asNumbers, ...requestOf(sent) }),
      estimateTokens: ({ inputs }) => embeddingTokens(inputs),
    },
    async ({ text, body, origin, request }) => {
      const call = embeddingsCall(origin, { text, body, request, sort: undefined });
      const served = await execute(inference, call);
      assert(served.kind === "whole", "embeddings are not streamed");
      const answer = asObject(JSON.parse(wholeText(served, call))) ?? {};
      const vectors = asObject(answer.embeddings)?.float as readonly (readonly number[])[];
      const { prompt_tokens: tokens, cost } = asObject(answer.usage) ?? {};
      const made = { vectors, tokens: asNumber(tokens) ?? 0, cost: asNumber(cost) };
      return wholeResponse(context, { served, call, text: JSON.stringify(render(made, body)) });
    },
  );
}

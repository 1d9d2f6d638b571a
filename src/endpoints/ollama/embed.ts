import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { Reply } from "../../http/reply.ts";
import { execute } from "../../inference/pipeline/execute.ts";
import { asNumber, asObject, objectsIn } from "../../inference/dialects/shared/wire-fields.ts";
import {
  embeddingTokens,
  readEmbeddingRequest,
} from "../../inference/surfaces/embeddings/embedding-request.ts";
import { embeddingsCall } from "../../inference/surfaces/embeddings/embeddings-call.ts";
import { modelIdOf } from "../../inference/surfaces/ollama/chat-request.ts";
import type { Fields } from "../../inference/surfaces/read-fields.ts";
import { assert } from "../../platform/kernel/assert.ts";
import type { Dependencies } from "../dependencies.ts";
import { wholeResponse, wholeText } from "../inference/answer-call.ts";
import { inferenceBodyBytesMax, rateClassOf, withSurfaceCall } from "../inference/read-call.ts";
import { encodeOllamaError, ollamaDoor } from "./door.ts";

/** How one of the two endpoints names its input and its vectors. */
interface EmbedForm {
  inputOf(body: Fields): unknown;
  render(vectors: readonly unknown[], tokens: number): Fields;
}

/** Answers a request for vectors: OpenAI's own, under other names. */
function embedIn(
  { inputOf, render }: EmbedForm,
  {
    context,
    deps,
  }: { context: RequestContext; deps: Pick<Dependencies, "inference" | "counters" | "clock"> },
): Promise<Reply> {
  const { counters, inference, clock } = deps;
  return withSurfaceCall(
    context,
    {
      counters,
      idPrefix: "",
      rateClassOf: (body) => rateClassOf(modelIdOf(body["model"])),
      read: ({ body }) =>
        readEmbeddingRequest({
          model: modelIdOf(body["model"]),
          input: inputOf(body),
          ...(typeof body["dimensions"] === "number" && { dimensions: body["dimensions"] }),
        }),
      estimateTokens: ({ inputs }) => embeddingTokens(inputs),
    },
    async ({ text, body, origin, request }) => {
      const call = embeddingsCall(origin, { text, body, request, sort: undefined });
      const served = await execute(inference, call);
      assert(served.kind === "whole", "embeddings are not streamed");
      const answer = asObject(JSON.parse(wholeText(served, call))) ?? {};
      const vectors = objectsIn(answer.data).map(({ embedding }) => embedding);
      const tokens = asNumber(asObject(answer.usage)?.prompt_tokens) ?? 0;
      const rendered = {
        model: body["model"],
        ...render(vectors, tokens),
        total_duration: Math.round((clock.monotonicMs() - context.startedMs) * 1e6),
      };
      return wholeResponse(context, { served, call, text: JSON.stringify(rendered) });
    },
  );
}

const shared = {
  ...ollamaDoor,
  method: "POST",
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  encodeError: encodeOllamaError,
} as const;

/** Returns vectors of texts in Ollama's form. */
export const ollamaEmbed = defineEndpoint<Pick<Dependencies, "inference" | "counters" | "clock">>({
  ...shared,
  path: "/api/embed",
  alsoAt: ["/ollama/api/embed"],
  summary: "Create embeddings in Ollama's form.",
  rawBody: z.looseObject({
    model: z.string(),
    input: z.union([z.string(), z.array(z.string())]),
    dimensions: z.int().optional(),
  }),
  response: () => z.looseObject({ embeddings: z.array(z.array(z.number())) }),
  handle: (context, deps) =>
    embedIn(
      {
        inputOf: (body) => body["input"],
        render: (embeddings, tokens) => ({
          embeddings,
          prompt_eval_count: tokens,
          load_duration: 1,
        }),
      },
      { context, deps },
    ),
});

/** Returns the vector of one text in Ollama's older form. */
export const ollamaEmbeddings = defineEndpoint<
  Pick<Dependencies, "inference" | "counters" | "clock">
>({
  ...shared,
  path: "/api/embeddings",
  alsoAt: ["/ollama/api/embeddings"],
  summary: "Create an embedding in Ollama's older form.",
  rawBody: z.looseObject({ model: z.string(), prompt: z.string() }),
  response: () => z.looseObject({ embedding: z.array(z.number()) }),
  handle: (context, deps) =>
    embedIn(
      { inputOf: (body) => body["prompt"], render: ([embedding]) => ({ embedding }) },
      { context, deps },
    ),
});

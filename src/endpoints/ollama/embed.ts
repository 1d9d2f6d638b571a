import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { Reply } from "../../http/reply.ts";
import { readEmbeddingRequest } from "../../inference/surfaces/embeddings/embedding-request.ts";
import { modelIdOf } from "../../inference/surfaces/ollama/chat-request.ts";
import type { Fields } from "../../inference/surfaces/read-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { answerVectors } from "../inference/foreign-vectors.ts";
import { inferenceBodyBytesMax } from "../inference/read-call.ts";
import { encodeOllamaError, ollamaDoor } from "./door.ts";

type Services = Pick<Dependencies, "inference" | "counters" | "clock">;

/** How one of the two endpoints names its input and its vectors. */
interface EmbedForm {
  inputOf(body: Fields): unknown;
  render(vectors: readonly unknown[], tokens: number): Fields;
}

/** Answers a request for vectors: OpenAI's own, under other names. */
const embedIn = (
  { inputOf, render }: EmbedForm,
  { context, deps }: { context: RequestContext; deps: Services },
): Promise<Reply> =>
  answerVectors(context, deps, {
    modelOf: (body) => modelIdOf(body["model"]),
    requestOf: ({ body }) =>
      readEmbeddingRequest({
        model: modelIdOf(body["model"]),
        input: inputOf(body),
        ...(typeof body["dimensions"] === "number" && { dimensions: body["dimensions"] }),
      }),
    render: ({ vectors, tokens }, { model }) => ({
      model,
      ...render(vectors, tokens),
      total_duration: Math.round((deps.clock.monotonicMs() - context.startedMs) * 1e6),
    }),
  });

const shared = {
  ...ollamaDoor,
  method: "POST",
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  encodeError: encodeOllamaError,
} as const;

/** Returns vectors of texts in Ollama's form. */
export const ollamaEmbed = defineEndpoint<Services>({
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

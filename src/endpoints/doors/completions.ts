import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { type Answer, Reply } from "../../http/reply.ts";
import type { JsonObject, JsonValue } from "../../inference/canonical/json.ts";
import type { Loss } from "../../inference/canonical/request.ts";
import type { ChatCall } from "../../inference/pipeline/inference-call.ts";
import { openaiChat } from "../../inference/dialects/openai-chat/index.ts";
import { type AskedCompletion, adaptCompletion } from "../../inference/surfaces/own-completions.ts";
import {
  chatOfCompletion,
  CompletionShaper,
  completionOfChat,
  type EchoedPrompt,
} from "../../inference/surfaces/completion-shaper.ts";
import { answerCall, outputCapHeader } from "../inference/answer-call.ts";
import { chatReader } from "../inference/chat-completions.ts";
import { withEarlyStream } from "../inference/streams/early-stream.ts";
import { chatChunkSchema, chatCompletionSchema } from "../inference/streams/stream-events.ts";
import {
  inferenceBodyBytesMax,
  withCall,
  type CallReader,
  type CallServices,
} from "../inference/read-call.ts";
import { inferenceHeaders } from "../inference/request-headers.ts";
import { ReshapedFrames } from "./reshaped-frames.ts";

const choice = z.looseObject({
  text: z.string(),
  index: z.int(),
  finish_reason: z.string().nullable(),
});

/** A whole answer; a chunk of a stream has the same form, without a reason before the last one. */
const completionSchema = lazily(() =>
  z.looseObject({
    id: z.string(),
    object: z.literal("text_completion"),
    created: z.int(),
    model: z.string(),
    choices: z.array(choice),
  }),
);

const shared = {
  method: "POST",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  tag: "Inference",
  otherResponseTypes: ["text/event-stream"],
  answerHeaders: outputCapHeader,
  headers: inferenceHeaders,
  encodeError: openaiChat.encodeError,
} as const;

/** The form in which a client writes a completion and reads its answer. */
interface CompletionForm {
  idPrefix: string;
  /** Returns the body by the names of the older API, and what the form has no answer to. */
  bodyOf(sent: JsonObject): { body: JsonObject; losses: readonly Loss[] };
  /** The output cap of a request that names none; absent where there is none. */
  maxTokensDefault?: number;
  render(answer: Answer, prompt: EchoedPrompt): Answer;
}

/** Returns the handler of completions in a form. */
const completing =
  ({ idPrefix, bodyOf, maxTokensDefault, render }: CompletionForm) =>
  (context: RequestContext, dependencies: CallServices): Promise<Answer> => {
    let asked: AskedCompletion | undefined;
    let generated = 1;
    const reader: CallReader = {
      ...chatReader,
      idPrefix,
      reshape(sent) {
        const { body, losses } = bodyOf(sent as JsonObject);
        const reshaped = chatOfCompletion(body, maxTokensDefault);
        asked = { body, losses, prompt: reshaped.prompt, ownOnly: reshaped.ownOnly };
        ({ generated } = reshaped);
        return reshaped;
      },
    };
    return withCall(context, { reader, services: dependencies }, async (call) => {
      call.recordedAs = "completions";
      const completion = asked as AskedCompletion;
      asOwnCompletion(call, completion, generated);
      const answer = await withEarlyStream(
        context,
        { call, dialect: openaiChat, inference: dependencies.inference },
        () => answerCall(context, call, dependencies),
      );
      return render(answer, completion.prompt);
    });
  };

/** Serves plain completions: a chat with one message, in the form of the older API. */
export const completions = defineEndpoint<CallServices>({
  ...shared,
  path: "/completions",
  summary: "Complete a text, whole or streamed.",
  description:
    "OpenAI's older dialect on every chat model. A provider with an endpoint of its own for completions is sent the request itself: " +
    "OpenAI's instruct model, DeepSeek, Codestral, Fireworks, Together, OpenRouter, vLLM and llama.cpp's server. Elsewhere the prompt " +
    "is sent as the user's message, which X-Service-Translation-Loss names as `prompt`; several prompts, token ids " +
    "and a `max_tokens` of 0 are then refused.",
  rawBody: z.looseObject({
    model: z.string(),
    prompt: z.union([z.string(), z.array(z.string()), z.array(z.int()), z.array(z.array(z.int()))]),
    suffix: z.string().nullish(),
    max_tokens: z.int().nullish(),
    echo: z.boolean().nullish(),
    logprobs: z.int().min(0).max(5).nullish(),
    n: z.int().min(1).nullish(),
    best_of: z.int().min(1).nullish(),
    stream: z.boolean().nullish(),
  }),
  streamEvents: completionSchema,
  response: completionSchema,
  handle: completing({
    idPrefix: "cmpl-",
    bodyOf: (body) => ({ body, losses: [] }),
    maxTokensDefault: 16,
    render: inCompletionForm,
  }),
});

/**
 * Serves Mistral's completions in the middle of a text: the same request, whose answer is a chat.
 * Source: https://docs.mistral.ai/api/endpoint/fim
 */
export const fimCompletions = defineEndpoint<CallServices>({
  ...shared,
  path: "/fim/completions",
  summary: "Complete the middle of a text, whole or streamed, for Mistral's clients.",
  description:
    "For editors that complete code: the text between `prompt` and `suffix`, on every chat model. Like `POST /completions`, with an " +
    "answer in the form of chat and no cap of its own; an endpoint for completions in OpenAI's form is sent 1,024.",
  rawBody: z.looseObject({
    model: z.string(),
    prompt: z.string(),
    suffix: z.string().nullish(),
    max_tokens: z.int().nullish(),
    min_tokens: z.int().min(0).nullish().describe("The least tokens of the answer."),
    random_seed: z.int().nullish().describe("The seed of the answer."),
    stream: z.boolean().nullish(),
  }),
  streamEvents: chatChunkSchema,
  response: chatCompletionSchema,
  handle: completing({
    idPrefix: "fim-",
    bodyOf: ({ random_seed: seed, echo, ...sent }) => ({
      body: { ...sent, ...(seed !== undefined && { seed }) },
      losses: echo === true ? [{ field: "echo", reason: "the answer has the form of a chat" }] : [],
    }),
    render: (answer) => answer,
  }),
});

/** Lets routes be asked at an endpoint of their own, where they have one. */
function asOwnCompletion(call: ChatCall, asked: AskedCompletion, generated: number): void {
  const overChat = call.adapt.bind(call);
  call.requirements.choices = generated;
  call.adapt = (route) => adaptCompletion(call, asked, { route, overChat });
}

function inCompletionForm(answer: Answer, prompt: EchoedPrompt): Answer {
  if (!(answer instanceof Reply)) return answer;
  const { body, headers } = answer;
  if (typeof body !== "string")
    return new Reply(new ReshapedFrames(body, new CompletionShaper(prompt)), { headers });
  const completion = completionOfChat(JSON.parse(body) as Record<string, JsonValue>, prompt);
  return new Reply(JSON.stringify(completion), { headers });
}

import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { type Answer, Reply } from "../../http/reply.ts";
import { parseJsonObject, readJsonText } from "../../http/bodies/read-body.ts";
import type { JsonObject } from "../../inference/canonical/json.ts";
import { badRequest } from "../../inference/dialects/shared/wire-fields.ts";
import { OllamaShaper, type OllamaForm } from "../../inference/surfaces/ollama/ollama-shaper.ts";
import {
  chatOfGenerate,
  chatOfOllama,
  loadingAskedFor,
  modelIdOf,
} from "../../inference/surfaces/ollama/chat-request.ts";
import { catalogFor, shownModel } from "../catalog/sub-route.ts";
import { answerCall, outputCapHeader } from "../inference/answer-call.ts";
import { chatReader } from "../inference/chat-completions.ts";
import {
  inferenceBodyBytesMax,
  withCall,
  type CallReader,
  type CallServices,
} from "../inference/read-call.ts";
import { inferenceHeaders } from "../inference/request-headers.ts";
import { ReshapedFrames } from "../doors/reshaped-frames.ts";
import { encodeOllamaError, ollamaDoor } from "./door.ts";

/** What one of the two endpoints says of a request. */
interface Asked {
  form: OllamaForm;
  reshape(body: JsonObject): ReturnType<typeof chatOfOllama>;
}

async function answerAs(
  { form, reshape }: Asked,
  { context, deps }: { context: RequestContext; deps: CallServices },
): Promise<Answer> {
  const { clock } = deps;
  const text = await readJsonText(context.request, inferenceBodyBytesMax);
  const body = parseJsonObject(text) as JsonObject;
  const shaper = new OllamaShaper({
    form,
    model: String(body.model ?? ""),
    startedMs: context.startedMs,
    nowMs: () => clock.monotonicMs(),
    nowText: () => new Date(clock.nowMs()).toISOString(),
  });
  const loading = loadingAskedFor(body);
  if (loading !== undefined) {
    const model = modelIdOf(body.model);
    if (model === "") throw badRequest("model", "is required: the name of a model of /api/tags.");
    // A preset is no model of the list, and is as ready as its model.
    if (!model.startsWith("@")) shownModel(catalogFor(deps, context.caller), model);
    return new Reply(`${JSON.stringify(shaper.loaded(loading))}\n`, {
      headers: { ...context.headers, "content-type": "application/json" },
    });
  }
  const reader: CallReader = {
    ...chatReader,
    received: { text, body },
    idPrefix: "",
    reshape: (sent) => reshape(sent as JsonObject),
  };
  return withCall(context, { reader, services: deps }, async (call) => {
    call.recordedAs = "ollama";
    return inOllamaForm(await answerCall(context, call, deps), shaper);
  });
}

function inOllamaForm(answer: Answer, shaper: OllamaShaper): Answer {
  if (!(answer instanceof Reply)) return answer;
  const { body, headers } = answer;
  if (typeof body === "string")
    return new Reply(JSON.stringify(shaper.whole(JSON.parse(body) as JsonObject)), { headers });
  return new Reply(new ReshapedFrames(body, shaper), {
    headers: { ...headers, "content-type": "application/x-ndjson" },
  });
}

const options = z.looseObject({}).nullish();

const shared = {
  ...ollamaDoor,
  method: "POST",
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  headers: inferenceHeaders,
  answerHeaders: outputCapHeader,
  encodeError: encodeOllamaError,
} as const;

const counts = {
  model: z.string(),
  created_at: z.string(),
  done: z.boolean(),
  done_reason: z.string().optional(),
  prompt_eval_count: z.int().optional(),
  eval_count: z.int().optional(),
  total_duration: z.int().optional().describe("Nanoseconds."),
};

/** Chats in Ollama's form. */
export const ollamaChat = defineEndpoint<CallServices>({
  ...shared,
  path: "/api/chat",
  alsoAt: ["/ollama/api/chat"],
  summary: "Chat in Ollama's form.",
  description:
    "A line of JSON for each piece, unless `stream` is false. A name means the same with and without `:latest`.",
  rawBody: z.looseObject({
    model: z.string(),
    messages: z.array(z.looseObject({ role: z.string() })).nullish(),
    tools: z.array(z.looseObject({})).nullish(),
    format: z.unknown().optional(),
    think: z.union([z.boolean(), z.string()]).nullish(),
    options,
    stream: z.boolean().nullish(),
  }),
  response: () => z.looseObject({ ...counts, message: z.looseObject({ role: z.string() }) }),
  handle: (context, deps) => answerAs({ form: "chat", reshape: chatOfOllama }, { context, deps }),
});

/** Completes a prompt in Ollama's form. */
export const ollamaGenerate = defineEndpoint<CallServices>({
  ...shared,
  path: "/api/generate",
  alsoAt: ["/ollama/api/generate"],
  summary: "Complete a prompt in Ollama's form.",
  rawBody: z.looseObject({
    model: z.string(),
    prompt: z.string().nullish(),
    system: z.string().nullish(),
    suffix: z.string().nullish(),
    images: z.array(z.string()).nullish(),
    options,
    stream: z.boolean().nullish(),
  }),
  response: () => z.looseObject({ ...counts, response: z.string() }),
  handle: (context, deps) =>
    answerAs({ form: "generate", reshape: chatOfGenerate }, { context, deps }),
});

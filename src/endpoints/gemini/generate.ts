import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { pathOf } from "../../http/request-context.ts";
import { type Answer, Reply } from "../../http/reply.ts";
import type { HttpRequest } from "../../http/served-request.ts";
import { lazily } from "../../http/endpoint.ts";
import type { JsonObject } from "../../inference/canonical/json.ts";
import { inCamelCase } from "../../inference/dialects/google-generate/contents/field-names.ts";
import { googleGenerate } from "../../inference/dialects/google-generate/index.ts";
import {
  checkGenerateRequest,
  generateRequestSchema,
} from "../../inference/dialects/google-generate/request-schema.ts";
import { countTokens } from "../../inference/pipeline/unbilled-requests.ts";
import { editMembers } from "../../platform/kernel/json/json-members.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { answerCall, outputCapHeader } from "../inference/answer-call.ts";
import { withEarlyStream } from "../inference/streams/early-stream.ts";
import { tokenCountHeader } from "../inference/messages.ts";
import {
  inferenceBodyBytesMax,
  readCall,
  withCall,
  type CallReader,
  type SurfaceBody,
  type CallServices,
} from "../inference/read-call.ts";
import { inferenceHeaders } from "../inference/request-headers.ts";
import { embed, embedMany, embedPredicted } from "./embed.ts";
import { GenerateFrames, type StreamForm } from "./generate-frames.ts";
import { methodPaths, modelMethodOf, otherPaths } from "./paths.ts";

/** What the path says of a request. */
interface Asked {
  model: string;
  stream: boolean;
}

/**
 * Returns the reader of a request in Google's dialect: the model and whether the answer is streamed
 * become members of the body, as they are in every other dialect.
 */
const generateReader = (asked: Asked, inner?: string): CallReader => ({
  dialect: googleGenerate,
  idPrefix: "",
  validate: checkGenerateRequest,
  prepare: (sent) => prepared(inner === undefined ? sent : innerBody(sent, inner), asked),
  dialectHeaders: [],
});

function prepared({ text, body }: SurfaceBody, { model, stream }: Asked): SurfaceBody {
  const spelt = withToolList(inCamelCase(body as JsonObject, text));
  const { serviceTier: tier } = spelt;
  return {
    text: editMembers(
      spelt === body ? text : JSON.stringify(spelt),
      new Map([
        ["model", JSON.stringify(model)],
        ["stream", String(stream)],
      ]),
    ),
    body: {
      ...spelt,
      model,
      stream,
      // Prices by tier are looked up under one name.
      ...(typeof tier === "string" && { service_tier: tier.toLowerCase() }),
    },
  };
}

/** Returns a body whose tools are a list: Google's servers read a single entry as a list of one. */
function withToolList(body: JsonObject): JsonObject {
  const { tools } = body;
  const isEntry = typeof tools === "object" && tools !== null && !Array.isArray(tools);
  return isEntry ? { ...body, tools: [tools as JsonObject] } : body;
}

/** Returns the request that a member contains, where there is one. */
function innerBody(sent: SurfaceBody, member: string): SurfaceBody {
  const spelt = inCamelCase(sent.body as JsonObject, sent.text);
  const inner = spelt[member];
  if (typeof inner !== "object" || inner === null || Array.isArray(inner)) return sent;
  return { text: JSON.stringify(inner), body: inner as Record<string, unknown> };
}

/** Answers a request for a whole answer or a stream. */
const generate =
  ({ stream }: { stream: boolean }) =>
  async (context: RequestContext, deps: CallServices, model: string): Promise<Answer> =>
    withCall(context, { reader: generateReader({ model, stream }), services: deps }, async (call) =>
      inForm(
        await withEarlyStream(
          context,
          { call, dialect: googleGenerate, inference: deps.inference },
          () => answerCall(context, call, deps),
        ),
        formOf(context),
      ),
    );

/** Returns the form of a stream for a client. */
function formOf({ query, request }: RequestContext): StreamForm {
  if (query.get("alt") !== "sse") return "array";
  const client = request.headers.get("x-goog-api-client") ?? "";
  return /\bgenai-js\//.test(client) ? "events-without-gaps" : "events";
}

/** Returns a stream in the form that the client asked for; whole answers have one form. */
function inForm(answer: Answer, form: StreamForm): Answer {
  if (!(answer instanceof Reply) || typeof answer.body === "string") return answer;
  const frames = new GenerateFrames(answer.body, form);
  const type = form === "array" ? { "content-type": "application/json" } : {};
  return new Reply(frames, { headers: { ...answer.headers, ...type } });
}

/** Counts the tokens of a prompt, which clients write as contents or as a whole request. */
async function count(context: RequestContext, deps: CallServices, model: string): Promise<Reply> {
  const reader = generateReader({ model, stream: false }, "generateContentRequest");
  const call = await readCall(context, reader, deps);
  const { inputTokens, source } = await countTokens(deps.inference, call);
  return context.json({ totalTokens: inputTokens }, { headers: { [tokenCountHeader]: source } });
}

type Method = (context: RequestContext, deps: CallServices, model: string) => Promise<Answer>;

/** The methods of a model, by the word behind the last colon of the path. */
const methods: Readonly<Record<string, Method>> = {
  generateContent: generate({ stream: false }),
  streamGenerateContent: generate({ stream: true }),
  countTokens: count,
  embedContent: embed,
  batchEmbedContents: embedMany,
  predict: embedPredicted,
};

function answer(context: RequestContext, deps: CallServices): Promise<Answer> {
  const { model, method } = modelMethodOf(context.request);
  const answerBy = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (answerBy !== undefined && model !== "") return answerBy(context, deps, model);
  if (method === "") throw notServed(context.request);
  const known = Object.keys(methods).join(", ");
  const message = `There is no method ${JSON.stringify(method)} of models here. A path ends with a model, a colon and one of ${known}.`;
  throw new GatewayError("not_found", message);
}

const part = lazily(() => z.looseObject({ text: z.string().optional() }));

/** A chunk of a stream; a whole answer has the same form. */
const answerSchema = lazily(() =>
  z
    .looseObject({
      candidates: z.array(
        z.looseObject({
          index: z.int().optional(),
          content: z.looseObject({ role: z.literal("model"), parts: z.array(part()) }),
          finishReason: z.string().optional(),
        }),
      ),
      usageMetadata: z
        .looseObject({
          promptTokenCount: z.int().optional(),
          candidatesTokenCount: z.int().optional(),
          totalTokenCount: z.int().optional(),
          cost: z.number().optional().describe("Charge in USD."),
        })
        .optional()
        .describe("Present on whole answers and on the last chunk."),
      modelVersion: z.string(),
      responseId: z.string(),
    })
    .meta({ id: "GenerateContentResponse" }),
);

const shared = {
  method: "POST",
  access: { llmKey: true, keyInQuery: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  tag: "Inference",
  rawBody: generateRequestSchema,
  otherResponseTypes: ["text/event-stream"],
  headers: inferenceHeaders,
  answerHeaders: outputCapHeader,
  streamEvents: answerSchema,
  response: answerSchema,
  encodeError: googleGenerate.encodeError,
} as const;

/** Serves Google's dialect on any model of the catalog. */
export const geminiMethod = defineEndpoint<CallServices>({
  ...shared,
  ...methodPaths,
  summary: "Ask a model in Google's dialect.",
  description:
    "`{model}` is the id of a model, a colon and a method: generateContent, streamGenerateContent, countTokens, embedContent, " +
    "batchEmbedContents, or predict for vectors in Vertex AI's form. Ids may contain slashes. Streams are events with `alt=sse` and one " +
    "JSON array without. Send the key as " +
    "`x-goog-api-key`, as `?key=` or as `Authorization: Bearer`. The charge is in `usageMetadata.cost`. Also served below " +
    "`/v1alpha`, `/v1` and `/gemini`.",
  handle: answer,
});

/** Returns whether a path ends with a method of Google's, after a colon. */
const namesMethod = (path: string): boolean => /(?::|%3A)[^/]*$/i.test(path);

/** The same at the path of Google's newer clients, for ids without a slash. */
export const geminiMethodOfId = defineEndpoint<CallServices>({
  ...shared,
  base: "api",
  serves: namesMethod,
  path: "/models/:id",
  summary: "Ask a model in Google's dialect, by an id without a slash.",
  handle: answer,
});

/** The same for ids with a slash. */
export const geminiMethodOfSlug = defineEndpoint<CallServices>({
  ...shared,
  base: "api",
  serves: namesMethod,
  path: "/models/:owner/:model",
  summary: "Ask a model in Google's dialect, by owner and name.",
  handle: answer,
});

const other = (method: "GET" | "POST" | "DELETE") =>
  defineEndpoint<unknown>({
    ...otherPaths,
    alsoAt: otherPaths.alsoAt.filter((path) => method !== "POST" || !isMethodPath(path)),
    method,
    access: { open: true },
    counting: "none",
    tag: "Inference",
    refuses: true,
    summary: "Refuse what the gateway does not have of Google's API.",
    description: "Cached contents, interactions, files and the like: 404 in Google's form.",
    encodeError: googleGenerate.encodeError,
    handle(context) {
      throw notServed(context.request);
    },
  });

const notServed = (request: HttpRequest): GatewayError =>
  new GatewayError(
    "not_found",
    `The gateway has no ${request.method} ${pathOf(request)}. It serves models and their methods.`,
  );

const isMethodPath = (path: string): boolean => methodPaths.alsoAt.some((each) => each === path);

/** Everything else below Google's paths. */
export const geminiOthers = [other("GET"), other("POST"), other("DELETE")];

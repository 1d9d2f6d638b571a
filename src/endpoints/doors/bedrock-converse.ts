import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { ErrorEncoder } from "../../http/error-envelope.ts";
import { type Answer, Reply } from "../../http/request-context.ts";
import type { JsonObject } from "../../inference/canonical/json.ts";
import {
  type ConverseEvent,
  ConverseShaper,
  converseOfMessage,
} from "../../inference/surfaces/converse/converse-answer.ts";
import { messagesOfConverse } from "../../inference/surfaces/converse/messages-request.ts";
import type { FrameSource } from "../../platform/kernel/frame-source.ts";
import { answerCall, outputCapHeader } from "../inference/answer-call.ts";
import { messagesReader } from "../inference/messages.ts";
import {
  inferenceBodyBytesMax,
  withCall,
  type CallReader,
  type CallServices,
} from "../inference/read-call.ts";
import { inferenceHeaders } from "../inference/request-headers.ts";

/** Names of Bedrock Runtime's exceptions by status, which its clients act on. */
const exceptionByStatus: Readonly<Record<number, string>> = {
  400: "ValidationException",
  401: "UnrecognizedClientException",
  402: "ServiceQuotaExceededException",
  403: "AccessDeniedException",
  404: "ResourceNotFoundException",
  408: "ModelTimeoutException",
  429: "ThrottlingException",
  503: "ServiceUnavailableException",
};

/**
 * Encodes an error as Bedrock's clients read it: botocore takes the exception's name from `code`,
 * others from `__type`. The gateway's own code is in `metadata`.
 */
const encodeBedrockError: ErrorEncoder = (error, { traceId }) => {
  const name = exceptionByStatus[error.status] ?? "InternalServerException";
  return {
    __type: name,
    code: name,
    message: error.message,
    metadata: {
      code: error.code,
      type: error.facts.type,
      fault: error.fault,
      trace_id: traceId,
      ...error.metadata,
    },
  };
};

const eventStream = "application/vnd.amazon.eventstream";

/** Writes events as Amazon's binary messages. The codec is loaded by the first such stream. */
async function eventWriter(): Promise<(event: ConverseEvent) => Uint8Array> {
  const { EventStreamCodec } = await import("@smithy/eventstream-codec");
  const codec = new EventStreamCodec(
    (bytes) => (typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("utf8")),
    (text) => Buffer.from(text),
  );
  const text = (value: string) => ({ type: "string" as const, value });
  return ({ type, isException, payload }) =>
    codec.encode({
      headers: {
        [isException ? ":exception-type" : ":event-type"]: text(type),
        ":content-type": text("application/json"),
        ":message-type": text(isException ? "exception" : "event"),
      },
      body: Buffer.from(JSON.stringify(payload)),
    });
}

/** Returns the binary messages of a Messages stream. A client that leaves ends the exchange. */
function binaryStream(
  source: FrameSource,
  { shaper, write }: { shaper: ConverseShaper; write(event: ConverseEvent): Uint8Array },
): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const frames = await source.next();
        if (frames === undefined) return controller.close();
        const events = frames
          .split("\n")
          .filter((line) => line.startsWith("data: "))
          .flatMap((line) => shaper.events(JSON.parse(line.slice("data: ".length)) as JsonObject));
        for (const event of events) controller.enqueue(write(event));
        if (events.length > 0) return;
      }
    },
    cancel: () => source.cancel(),
  });
}

/** Serves a request in Converse's form, whole or streamed. */
async function converse(
  context: RequestContext,
  { stream, deps }: { stream: boolean; deps: CallServices },
): Promise<Answer> {
  const model = context.param("id");
  const reader: CallReader = {
    ...messagesReader,
    reshape: (body) => messagesOfConverse(body as JsonObject, { model, stream }),
  };
  return withCall(context, { reader, services: deps }, async (call) => {
    call.recordedAs = "converse";
    const answer = await answerCall(context, call, deps);
    if (!(answer instanceof Reply)) return answer;
    const { body, headers } = answer;
    const latencyMs = (): number => Math.round(deps.clock.monotonicMs() - context.startedMs);
    if (typeof body === "string") {
      const told = converseOfMessage(JSON.parse(body) as JsonObject, latencyMs());
      return new Reply(JSON.stringify(told), { headers });
    }
    const write = await eventWriter();
    const frames = binaryStream(body, { shaper: new ConverseShaper(latencyMs), write });
    return new Response(frames, { headers: { ...headers, "content-type": eventStream } });
  });
}

const block = z.looseObject({});

const shared = {
  method: "POST",
  base: "root",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  tag: "Inference",
  headers: inferenceHeaders,
  answerHeaders: outputCapHeader,
  encodeError: encodeBedrockError,
  rawBody: z.looseObject({
    messages: z
      .array(z.looseObject({ role: z.string(), content: z.array(block) }))
      .describe("The conversation, in Converse's blocks."),
    system: z.array(block).nullish(),
    inferenceConfig: block.nullish().describe("maxTokens, temperature, topP, stopSequences."),
    toolConfig: block.nullish().describe("Tools by toolSpec, and toolChoice."),
    additionalModelRequestFields: block
      .nullish()
      .describe("thinking, top_k, output_config and context_management are used."),
  }),
} as const;

/** Serves Bedrock's Converse on any model. */
export const bedrockConverse = defineEndpoint<CallServices>({
  ...shared,
  path: "/model/:id/converse",
  summary: "Chat in the form of Bedrock's Converse.",
  description:
    "For clients of Amazon Bedrock Runtime: the model is an id or a name of models, a slash in it encoded. " +
    "Send the key as a bearer token, as `AWS_BEARER_TOKEN_BEDROCK` does; signatures are not read. " +
    "Guardrails of Bedrock are refused, not ignored.",
  response: () =>
    z.looseObject({
      output: z.looseObject({}).describe("The message, as `message`."),
      stopReason: z.string().describe("Why the answer ended."),
      usage: z.looseObject({}).describe("Tokens, and the charge as `cost`."),
      metrics: z.looseObject({}).describe("`latencyMs`."),
    }),
  handle: (context, deps) => converse(context, { stream: false, deps }),
});

/** Serves Bedrock's ConverseStream on any model. */
export const bedrockConverseStream = defineEndpoint<CallServices>({
  ...shared,
  path: "/model/:id/converse-stream",
  summary: "Chat in the form of Bedrock's ConverseStream.",
  description: "The same as `/converse`, as Amazon's binary event stream.",
  otherResponseTypes: ["application/octet-stream"],
  handle: (context, deps) => converse(context, { stream: true, deps }),
});
